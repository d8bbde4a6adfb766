"""What a page is made of: sections of blocks, which the templates turn into HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Paragraph:
    """A text."""

    text: str
    kind: ClassVar = "paragraph"


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    rows: Mapping[str, str]
    kind: ClassVar = "facts"


@dataclass(frozen=True)
class Listing:
    """Bullet points."""

    items: Sequence[str]
    kind: ClassVar = "listing"


@dataclass(frozen=True)
class Code:
    """A command, to be copied."""

    text: str
    kind: ClassVar = "code"


@dataclass(frozen=True)
class Chart:
    """A figure as plotly.js reads it, and in words."""

    title: str
    alt: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Charts:
    """Figures side by side. Of several sets one is shown at a time; the label says what they are sets of."""

    sets: Mapping[str, Sequence[Chart]]
    label: str = ""
    name: str = ""  # for tables that highlight its curves
    kind: ClassVar = "charts"


@dataclass(frozen=True)
class TableCell:
    """One entry, by what it sorts, and lines below it."""

    text: str
    sort: str | float | None = None  # else its text; empty texts come last
    below: Sequence[tuple[str, str]] = ()  # a text, and the mark behind it
    is_name: bool = False


@dataclass(frozen=True)
class DataTable:
    """A table that is sorted by a click on a header."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    traces: Sequence[str] = ()  # for each row the curve that it highlights
    chart: str = ""  # the name of the charts with these curves
    kind: ClassVar = "table"


@dataclass(frozen=True)
class Card:
    """An item with its picture."""

    title: str
    picture: str  # a data URI; empty where there is none
    alt: str
    rows: Mapping[str, str]


@dataclass(frozen=True)
class Cards:
    """Items side by side."""

    title: str
    cards: Sequence[Card]
    kind: ClassVar = "cards"


Block = Paragraph | Facts | Listing | Code | Charts | DataTable | Cards


@dataclass(frozen=True)
class Section:
    """A heading and what follows it; `problem` says why something is missing."""

    title: str
    blocks: Sequence[Block] = ()
    problem: str = ""
    name: str = field(default="")

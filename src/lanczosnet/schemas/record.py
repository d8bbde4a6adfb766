"""How a JSON document becomes a typed object, or one message that names file, field, what was expected and what to do.

A schema is a class of typed fields (a msgspec `Struct`). Laws between fields are `__post_init__` methods that raise a
ValueError. To add a field:

1. Add a line with its type. Give it a default, so that files of earlier versions can still be read. Limit it with one
   of the types below (`Count`, `Finite`, ...) or with `Annotated[type, Meta(...)]`.
2. Add a law to `__post_init__` if its value must fit those of other fields.
3. If a program that does not know the field would give wrong answers, raise the format's number (`FORMAT`).
4. If old values mean something else now, add a step to `migrations`: format n -> a function that makes format n + 1.

A field that a schema does not know is refused: a newer program wrote it, or it is damage.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from lanczosnet._extras import explained
from lanczosnet.schemas.limits import limit, too_many

try:
    import msgspec
    from msgspec import Meta
    from msgspec import field as field  # for schemas
except ImportError as error:
    raise explained(error) from error

Document = dict[str, Any]
T = TypeVar("T")

LARGEST = 3.4028234663852886e38  # of a float32
Count = Annotated[int, Meta(ge=0, le=2**62)]
Positive = Annotated[int, Meta(ge=1, le=2**62)]
Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
PositiveFinite = Annotated[float, Meta(gt=0, le=LARGEST)]
Share = Annotated[float, Meta(gt=0, le=1)]
Name = Annotated[str, Meta(min_length=1, max_length=10_000)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{16}\\Z")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}\\Z")]


class FileError(ValueError):
    """A file is not what it should be; the message names it, the field, what was expected, and what to do."""

    def __init__(self, problem: str, *, file: str | Path = "", field: str = "", remedy: str = "") -> None:
        super().__init__(": ".join(filter(None, [str(file), field, problem])) + (f". {remedy}" if remedy else ""))


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A typed part of a JSON document, which can also be read as the mapping that stands in the file."""

    def __getitem__(self, key: str) -> Any:
        if key not in self:
            raise KeyError(key)
        return getattr(self, key)

    def __contains__(self, key: object) -> bool:
        tag = self.__struct_config__.tag_field
        return key == tag or (key in self.__struct_fields__ and not self._is_absent(str(key)))

    def __iter__(self) -> Iterator[str]:
        return (key for key in self.__struct_fields__ if key in self)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 - this is `get`

    def document(self) -> Document:
        """As JSON holds it."""
        built: Document = msgspec.to_builtins(self)
        return built

    def _is_absent(self, key: str) -> bool:
        """Optional, and not in the file."""
        places = dict(zip(reversed(self.__struct_fields__), reversed(self.__struct_defaults__), strict=False))
        return getattr(self, key) is None and places.get(key, ...) is None


def parsed(text: bytes | str, where: str | Path, remedy: str) -> Document:
    """The JSON object in a text."""
    if len(text) > limit("JSON"):
        raise FileError(too_many("JSON", len(text)), file=where, remedy=remedy)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"not a JSON document ({error})", file=where, remedy=remedy) from error
    if not isinstance(document, dict):
        raise FileError(f"expected a JSON object, but got {kind_of(document)}", file=where, remedy=remedy)
    return document


def checked(document: Any, schema: type[T], where: str | Path, remedy: str) -> T:
    """The document as an object of its schema."""
    try:
        return msgspec.convert(document, schema)
    except msgspec.ValidationError as error:
        problem, field = _told(str(error))
        raise FileError(problem, file=where, field=field, remedy=remedy) from error
    except UnicodeEncodeError as error:  # a text that JSON can write and Unicode cannot, in place of a number
        raise FileError(f"a text is not valid Unicode ({error})", file=where, remedy=remedy) from error
    except (RecursionError, OverflowError) as error:
        raise FileError(f"a value is nested too deeply or too large ({error})", file=where, remedy=remedy) from error


def checksum_of(document: Document) -> str:
    """SHA-256 of a document without its field `checksum`, however it is indented and whatever the order of its keys."""
    content = {key: value for key, value in document.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def signed(document: Document) -> Document:
    """The document as JSON has it, with its checksum."""
    plain: Document = json.loads(json.dumps(document))
    return plain | {"checksum": checksum_of(plain)}


def check_checksum(document: Document, where: str | Path, remedy: str) -> None:
    """An error if the document is not as it was written; one of an earlier version has no checksum."""
    if "checksum" in document and document["checksum"] != checksum_of(document):
        problem = "the document was changed after it was written: its checksum is another"
        raise FileError(
            problem, file=where, remedy=f"{remedy}; if you changed it on purpose, remove the field checksum"
        )


def check_type(value: Any, kind: Any, what: str) -> None:
    """An error if the value is not of the type, as annotations write it."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problem, place = _told(str(error))
        expected = problem.removeprefix("expected ").partition(", but got ")[0]
        raise FileError(f"{what}{place} is {expected}, not {shown(value)}") from error
    except (TypeError, OverflowError):  # of a type that no file can hold, or a number of 400 digits
        return


def up_to_date(
    document: Document,
    newest: int,
    where: str | Path,
    remedy: str,
    migrations: Mapping[int, Callable[[Document], Document]] | None = None,
    key: str = "format",
) -> Document:
    """The document in the newest format; one of a newer program is refused by its number."""
    version = document.get(key)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise FileError(f"expected a version number, but got {shown(version)}", file=where, field=key, remedy=remedy)
    if version > newest:
        raise FileError(f"format {shown(version)}, this program reads up to {newest}: update lanczosnet", file=where)
    for old in range(version, newest):
        document = (migrations or {})[old](document)
    return document


def shown(value: Any) -> str:
    """A value in a message: short, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def kind_of(value: Any) -> str:
    """What JSON calls it."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


_KINDS = {
    "object": "an object",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}


def _told(message: str) -> tuple[str, str]:
    """msgspec's message in plain words, and the field that it is about."""
    problem, _, place = message.partition(" - at `$")
    field = place.removesuffix("`").removeprefix(".").replace("[...]", "")
    problem = re.sub(r"^Object missing required field `(.*)`$", r"the field '\1' is missing", problem)
    problem = re.sub(
        r"^Object contains unknown field `(.*)`$",
        lambda match: f"unknown field {shown(match[1])}: a newer program wrote it, or the file is damaged",
        problem,
    )
    problem = problem.replace("Invalid enum value", "Invalid value")
    problem = re.sub(r"`([\w |]+)`", lambda match: _kinds_of(match[1]), problem)
    problem = re.sub(r"^Expected (.*), got ", r"expected \1, but got ", problem)
    problem = re.sub(r"^Expected ", "expected ", problem)
    return problem[:300], field


def _kinds_of(text: str) -> str:
    return " or ".join(_KINDS.get(part.strip(), part.strip()) for part in text.split("|"))


def check_distinct(name: str, values: tuple[Any, ...]) -> None:
    if len(set(values)) != len(values):
        raise ValueError(f"{name} must be distinct, but some are repeated")

"""Docstrings for the reference: their formulas as MathML, which browsers draw without a script, and their links."""

import re
from textwrap import dedent
from typing import Any

import griffe
from latex2mathml.converter import convert

BLOCK = re.compile(r"^\.\. math::\n((?:[ ]{4,}.*\n|\n)+)", re.MULTILINE)
INLINE = re.compile(r":math:`(.+?)`", re.DOTALL)
LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^>]+)>`_")


def to_markdown(text: str) -> str:
    """A docstring with `.. math::`, `:math:` and links as reStructuredText has them -> Markdown with MathML."""
    text = BLOCK.sub(lambda match: "\n" + convert(dedent(match[1]).strip(), display="block") + "\n\n", text + "\n")
    text = INLINE.sub(lambda match: f"<span>{convert(' '.join(match[1].split()))}</span>", text)
    return LINK.sub(r"[\1](\2)", text).rstrip()


class Formulas(griffe.Extension):
    """Converts every docstring that the reference shows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)

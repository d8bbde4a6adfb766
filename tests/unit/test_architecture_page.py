"""docs/architecture.md draws the arrows that the architecture test allows.

`PYTHONPATH=tests python tests/unit/test_architecture_page.py` writes them into the page.
"""

import re
from pathlib import Path

from unit.test_architecture import MAY_IMPORT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
GENERATED = re.compile(r"(?<=<!-- imports -->\n).*?(?=<!-- end -->)", re.DOTALL)
HOW = "the page is out of date: run `PYTHONPATH=tests python tests/unit/test_architecture_page.py`"


def arrows() -> str:
    """The picture, and one line per room."""
    lines = [f"{room} -> {', '.join(sorted(others)) or 'nothing'}" for room, others in sorted(MAY_IMPORT.items())]
    edges = [f"    {room} --> {other}" for room in sorted(MAY_IMPORT) for other in sorted(direct(room))]
    picture = "\n".join(["```mermaid", "flowchart TD", *edges, "```"])
    return "\n".join([picture, "", "```", *lines, "```", ""])


def direct(room: str) -> set[str]:
    """The rooms that no other path leads to."""
    return MAY_IMPORT[room] - set().union(*(reached(other) for other in MAY_IMPORT[room]))


def reached(room: str) -> set[str]:
    return MAY_IMPORT[room].union(*(reached(other) for other in MAY_IMPORT[room]))


def test_the_page_lists_the_arrows_that_are_allowed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    listed = dict(re.findall(r"^(\w+) -> (.+)$", page, re.MULTILINE))
    assert {room: set(others.replace("nothing", "").split(", ")) - {""} for room, others in listed.items()} == (
        MAY_IMPORT
    ), HOW


def test_the_picture_shows_the_arrows_that_no_longer_path_replaces() -> None:
    assert GENERATED.search(PAGE.read_text(encoding="utf-8"))[0] == arrows(), HOW


if __name__ == "__main__":
    PAGE.write_text(GENERATED.sub(arrows(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")

"""One exception for everything that can be wrong with a user's names and files."""

from pathlib import Path


class DataError(ValueError):
    """A file or a name cannot be used; the message says which file, which row, what is wrong and what to do.

    Rows are counted as a spreadsheet counts them: the header is row 1, the first record is row 2.
    """

    def __init__(self, problem: str, *, file: str | Path = "", row: int | None = None, remedy: str = "") -> None:
        place = ", row ".join(str(part) for part in (file, row) if part)
        super().__init__(": ".join(filter(None, [place, problem])) + (f". {remedy}" if remedy else ""))

"""`metrics.jsonl`: a line per epoch, for people and programs that watch a run."""

import json
import os
from pathlib import Path
from typing import TextIO

from lanczosnet.files import atomic_write, full_disk_explained
from lanczosnet.training.state import EpochReport


class MetricsFile:
    """A line of metrics per epoch; without a path nothing is written.

    A file that is there is never changed in place: what stays of it becomes a new file, to which lines are appended.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lines: TextIO | None = None  # from the first epoch on: a run that cannot start leaves nothing

    def __enter__(self) -> "MetricsFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def write(self, report: EpochReport) -> None:
        if self.path:
            with full_disk_explained(self.path):
                self._lines = self._lines or _after(self.path, report.epoch - 1)
                self._lines.write(json.dumps(report.as_dict()) + "\n")
                self._lines.flush()
            self._keep_deleted()

    def close(self) -> None:
        if self._lines:
            self._keep_deleted()
            self._lines.close()
            self._lines = None

    def _keep_deleted(self) -> None:
        """Write the file again if somebody deleted it: its lines are still to be had from the open one."""
        if self.path and self._lines and not os.fstat(self._lines.fileno()).st_nlink:
            self._lines.seek(0)
            content = self._lines.read()
            self._lines.close()
            self._lines = _holding(self.path, content)


def _after(path: Path, epochs: int) -> TextIO:
    """Lines after the first `epochs` are of a run that was killed."""
    is_ours = path.is_file() and not path.is_symlink()
    kept = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)[:epochs] if is_ours else []
    return _holding(path, "".join(kept))


def _holding(path: Path, content: str) -> TextIO:
    """A new file with this content, to append to."""
    with atomic_write(path, follows_links=False) as temporary:
        temporary.write_text(content, encoding="utf-8")
    return path.open("a+", encoding="utf-8")

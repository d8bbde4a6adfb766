"""What a conversion has done, in a file beside its unfinished arrays."""

import json
import time
from pathlib import Path
from typing import Any

from lanczosnet.files import atomic_write
from lanczosnet.files.json_text import parsed_json

SECONDS = 2.0  # between two notes


class Journal:
    """Facts of every step by its name; those of another conversion are forgotten."""

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path = path
        self.identity = json.loads(json.dumps(identity))
        self.facts: dict[str, Any] = self._read()
        self._last = time.monotonic()

    def get(self, step: str) -> Any:
        """What was noted of a step last, or None."""
        return self.facts.get(step)

    @property
    def is_due(self) -> bool:
        """Whether the last note is some time ago."""
        return time.monotonic() - self._last >= SECONDS

    def note(self, step: str, facts: Any) -> None:
        self.facts[step] = facts
        with atomic_write(self.path) as temporary:
            temporary.write_text(json.dumps({"identity": self.identity, "facts": self.facts}), encoding="utf-8")
        self._last = time.monotonic()

    def _read(self) -> dict[str, Any]:
        try:
            content = parsed_json(self.path.read_text(encoding="utf-8"))
            return dict(content["facts"]) if content["identity"] == self.identity else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

"""Published numbers, as files: what the tables are compared with. Each file names its source in its first line."""

import csv
from functools import cache
from importlib.resources import files


@cache
def published(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a file: citation, stratified, public, nodes, molecules, qm8 or ablation."""
    text = files(__name__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))

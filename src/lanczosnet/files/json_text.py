"""JSON from files that may be damaged."""

import json
from typing import Any


def parsed_json(text: str) -> Any:
    """What a text says; a ValueError also where it is nested too deeply for Python."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"a value is nested too deeply ({error})") from error

"""Options that several verbs share, as dataclasses."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints


def with_option_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb of whose parameters some are dataclasses, each shown as one option per field."""
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}

    @functools.wraps(verb)
    def command(**options: Any) -> None:
        given = {name: _taken(kind, options) for name, kind in groups.items()}
        verb(**options, **given)

    parameters = list(_options_of(verb, hints))
    shown: Any = command
    shown.__signature__ = inspect.Signature(parameters)
    shown.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _taken(kind: Any, options: dict[str, Any]) -> Any:
    return kind(**{field.name: options.pop(field.name) for field in dataclasses.fields(kind)})


def _options_of(verb: Callable[..., None], hints: dict[str, Any]) -> Iterator[inspect.Parameter]:
    """The parameters in their order, those of a dataclass in its place."""
    for name, parameter in inspect.signature(verb).parameters.items():
        kind = hints[name]
        if dataclasses.is_dataclass(kind):
            hints_of_fields = get_type_hints(kind, include_extras=True)
            for field in dataclasses.fields(kind):
                annotation = hints_of_fields[field.name]
                yield parameter.replace(name=field.name, default=field.default, annotation=annotation)
        else:
            yield parameter.replace(annotation=kind)

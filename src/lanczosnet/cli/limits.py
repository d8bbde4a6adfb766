"""`--limit`: the option of every verb that reads files, which raises a limit of `lanczosnet.schemas.limits`."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from lanczosnet.schemas.limits import LIMITS, LimitError, raised, variable

Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit", metavar="NAME=VALUE", help="Another limit, as classes=50000 (SECURITY.md lists them); repeatable."
    ),
]
_OPTION = inspect.Parameter("limits", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Limits)


def limited(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with the option `--limit`, which holds while the verb runs, in its worker processes, too."""

    @functools.wraps(verb)
    def command(*arguments: Any, limits: list[str] | None = None, **options: Any) -> None:
        with raised(dict(map(_read, limits or []))):
            verb(*arguments, **options)

    signature = inspect.signature(verb)
    shown: Any = command
    shown.__signature__ = signature.replace(parameters=[*signature.parameters.values(), _OPTION])
    shown.__annotations__ = verb.__annotations__ | {"limits": Limits}
    return command


def _read(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    name = name.strip().upper().replace("-", "_")
    if not sign or name not in LIMITS:
        names = ", ".join(LIMITS).lower()
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE with a NAME of {names}", param_hint="--limit")
    try:
        with raised({name: value.strip()}):
            pass
    except LimitError as error:
        raise typer.BadParameter(str(error).replace(variable(name), name.lower()), param_hint="--limit") from None
    return name, value.strip()

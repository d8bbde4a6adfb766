"""Where the documentation of a verb is; every `--help` ends with it."""

SITE = "https://lanczosnet.github.io/lanczosnet"  # as pyproject.toml has it


def page_of(verb: str) -> str:
    """The epilogue of a verb's help."""
    return f"Page: {SITE}/commands/{verb}/"

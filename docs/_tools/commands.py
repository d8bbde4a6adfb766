"""A page for every verb of the command line, from what `--help` knows, with links to its guides."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

# The pages that explain a verb, by their titles.
GUIDES = {
    "demo": {"Ten minutes": "tutorial/ten-minutes.md"},
    "train": {
        "Train on your own table": "how-to/own-csv.md",
        "Train on your own graph": "how-to/own-graph.md",
        "Change settings": "how-to/settings.md",
        "Training": "training.md",
    },
    "tune": {"Search for hyperparameters": "how-to/tune.md", "Change settings": "how-to/settings.md"},
    "evaluate": {"Ten minutes": "tutorial/ten-minutes.md", "Training": "training.md"},
    "predict": {"For a chemist": "tutorial/chemist.md", "Training": "training.md"},
    "encode": {"For a chemist": "tutorial/chemist.md", "Training": "training.md"},
    "report": {"Reports": "report.md"},
    "table": {"Reproduce a table of the paper": "how-to/reproduce-a-table.md", "Protocols": "protocols.md"},
    "spectrum": {"Lanczos and its Ritz values": "gallery/lanczos_ritz_values.md", "Numerics": "numerics.md"},
    "embed": {"Diffusion maps": "diffusion_maps.md"},
    "doctor": {"Back ends": "numerics.md#back-ends"},
    "data": {"Data": "data.md"},
}
EXAMPLE = re.compile(r"^lanczosnet .+$(?:\n\nlanczosnet .+$)*", re.MULTILINE)
PAGE = re.compile(r"^Page(?: of each verb)?: \S+\n*", re.MULTILINE)  # that `--help` points to: this one


def reference() -> str:
    """All verbs in Markdown, as typer writes them."""
    command = [sys.executable, "-m", "typer", "lanczosnet.cli.app", "utils", "docs", "--name", "lanczosnet"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def pages(text: str) -> dict[str, str]:
    """The page of every verb, and `index`."""
    intro, *verbs = re.split(r"^## `lanczosnet (\w+)`\n", text, flags=re.MULTILINE)
    found = {name: page(name, body) for name, body in zip(verbs[::2], verbs[1::2], strict=True)}
    rows = "\n".join(f"| [`{name}`]({name}.md) | {summary(body)} |" for name, body in found.items())
    head = PAGE.sub("", intro.partition("**Commands**")[0]).replace("# `lanczosnet`", "# The command line", 1)
    head = head.replace("$ lanczosnet", "lanczosnet")
    return found | {"index": f"{head.strip()}\n\n| verb | |\n|---|---|\n{rows}\n"}


def page(name: str, body: str) -> str:
    body = EXAMPLE.sub(lambda found: "```console\n" + found[0].replace("\n\n", "\n") + "\n```", PAGE.sub("", body))
    links = ", ".join(f"[{title}](../{target})" for title, target in GUIDES[name].items())
    body = re.sub(r"^### ", "## ", body.replace("$ lanczosnet", "lanczosnet"), flags=re.MULTILINE)
    return f"# lanczosnet {name}\n\n{body.strip()}\n\nRead more: {links}.\n"


def summary(page: str) -> str:
    """The first sentence below the title."""
    return page.split("\n\n")[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(reference()).items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

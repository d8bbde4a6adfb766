"""What MkDocs does beside its plugins: pages from outside of docs/, the gallery, and a check of the built site."""

import re
from pathlib import Path
from typing import Any

import jupytext
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "build" / "gallery"
OUTSIDE = {"RESULTS.md": "results.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
# Whatever a page loads by itself; a link that a reader follows is no request.
LOADED = re.compile(r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?(?:https?:)?//|<link\b[^>]*")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, target in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text.replace("](docs/", "](")))
    for path in sorted(GALLERY.iterdir()) if GALLERY.is_dir() else []:
        files.append(File.generated(config, f"gallery/{path.name}", content=path.read_bytes()))
        if path.suffix == ".py":
            notebook = jupytext.writes(jupytext.read(path), fmt="ipynb")
            files.append(File.generated(config, f"gallery/{path.stem}.ipynb", content=notebook))
    files.append(File.generated(config, "gallery/index.md", content=gallery_index()))
    return files


def gallery_index() -> str:
    """Every example with its first figure."""
    lines = ["# Gallery", "", "Short examples, each run when these pages are built.", "", '<div class="grid cards" markdown>']
    for page in sorted(GALLERY.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        figure = re.search(r"!\[.*?\]\((.*?)\)", text)
        lines += ["", f"- [![{title}]({figure[1] if figure else ''})<br>{title}]({page.name})"]
    return "\n".join([*lines, "", "</div>", ""])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files that are not part of the site become plain text, or lead to the page made of the file."""
    folder = Path(page.file.src_uri).parent

    def within(match: re.Match[str]) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        name = Path(target).name
        if name in OUTSIDE and target.startswith(("../", name)):
            return f"{image}[{text}]({'../' * len(folder.parts)}{OUTSIDE[name]}{anchor})"
        return text if target.startswith("../") and _leaves(folder / target) else match[0]

    return LINK.sub(within, markdown)


def _leaves(path: Path) -> bool:
    """Whether a path relative to docs/ leads out of it."""
    depth = 0
    for part in path.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def on_post_page(output: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """A page that loads anything from the network is an error."""
    for match in LOADED.finditer(output):
        tag = match[0]
        is_link = tag.startswith("<link")
        if not is_link or re.search(r"rel=[\"']?(?:stylesheet|preconnect|preload|icon)\b.*//|//.*rel=[\"']?(?:stylesheet|preconnect)", tag):
            raise PluginError(f"{page.file.src_uri} loads from the network: {tag}")
    return output

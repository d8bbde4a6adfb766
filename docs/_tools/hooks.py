"""What MkDocs does beside its plugins: pages from outside of docs/, the gallery, and a check of the built pages."""

import ast
import posixpath
import re
from itertools import count
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebooks import EXAMPLES, NOTEBOOKS, ROOT, notebook

# What run_gallery.py, commands.py and diagrams.py left.
GALLERY, COMMANDS, DIAGRAMS = (ROOT / "build" / name for name in ("gallery", "commands", "diagrams"))
OUTSIDE = {"RESULTS.md": "results.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
PUBLIC = re.compile(r"^::: lanczosnet\.([\w.]+)$", re.MULTILINE)
FORMULA = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FLOWCHART = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
# What a browser loads by itself from another server. A link that a reader follows is none of that.
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon))[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, target in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text.replace("](docs/", "](")))
    made = [path for folder in (GALLERY, COMMANDS, DIAGRAMS) for path in sorted(folder.iterdir())]
    for path in (*made, *map(checked_notebook, EXAMPLES.glob("*.py"))):
        folder = "gallery" if path.parent == NOTEBOOKS else path.parent.name
        files.append(File.generated(config, f"{folder}/{path.name}", content=path.read_bytes()))
    files.append(File.generated(config, "gallery/index.md", content=gallery_index()))
    return files


def checked_notebook(example: Path) -> Path:
    """The notebook in the repository, if it is that of the example."""
    path = NOTEBOOKS / f"{example.stem}.ipynb"
    if not path.is_file() or path.read_text(encoding="utf-8") != notebook(example):
        raise PluginError(f"{path} is out of date: run `make notebooks`")
    return path


def gallery_index() -> str:
    """Every example with its figure."""
    cards = [_card(page) for page in sorted(GALLERY.glob("*.md"))]
    about = (
        "Short examples, run when these pages are built. Each is a script and a notebook, for Colab and Binder, too."
    )
    return "\n\n".join(["# Gallery", about, '<div class="grid cards" markdown>', *cards, "</div>"])


def _card(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    title = text.splitlines()[0].removeprefix("# ")
    figure = re.search(r"!\[.*?\]\((.*?)\)", text)
    assert figure is not None, f"{page.name} has no figure"
    return f"- [![]({figure[1]})<br>{title}]({page.name})"  # the title says what an alternative text would


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    folder = posixpath.dirname(page.file.src_uri)
    markdown = PUBLIC.sub(lambda match: reference(match[1]), markdown)
    # Browsers draw MathML without a script, and GitHub draws the block that it is made of.
    markdown = FORMULA.sub(lambda match: _formula(match[1]), markdown)
    numbers = count()
    markdown = FLOWCHART.sub(lambda match: _picture(page.file.name, next(numbers), match[1], folder), markdown)
    return LINK.sub(lambda match: _within_site(match, folder), markdown)


def _formula(text: str) -> str:
    return f'<div class="formula">{convert(text.strip(), display="block")}</div>'


def _picture(name: str, number: int, flowchart: str, folder: str) -> str:
    """A flowchart as diagrams.py drew it; its lines say what it shows."""
    arrows = re.sub(r"\[.*?\]", "", flowchart).replace("-.->", "to").replace("-->", "to").splitlines()[1:]
    alt = "Flowchart: " + "; ".join(map(str.strip, arrows))
    return f"![{alt}]({posixpath.relpath(f'diagrams/{name}-{number}.svg', folder or '.')})"


def _within_site(match: re.Match[str], folder: str) -> str:
    """A link out of docs/ leads to the page that is made of its file, or becomes plain text."""
    text, target, anchor = match[1], posixpath.normpath(posixpath.join(folder, match[2])), match[3] or ""
    if not target.startswith("../"):
        return match[0]
    made = OUTSIDE.get(target.removeprefix("../"))
    return f"[{text}]({posixpath.relpath(made, folder or '.')}{anchor})" if made else text


def reference(name: str) -> str:
    """An entry for every public name of a package, or for one name of `lanczosnet` itself.

    It stands under the path of its definition: `lanczosnet.krylov.lanczos` is a function, and a module as well.
    """
    source = ROOT / "src" / "lanczosnet"
    package = source / name.replace(".", "/")
    if package.is_dir():
        homes = public_names(package / "__init__.py")
    else:
        homes = {name: public_names(source / "__init__.py")[name]}
    return "\n\n".join(f'<a id="{name}"></a>\n\n::: {home}' for name, home in homes.items())


def public_names(init: Path) -> dict[str, str]:
    """Each name of `__all__`, and where it is defined."""
    tree = ast.parse(init.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    here = ".".join(init.relative_to(ROOT / "src").parent.parts)
    homes = {name: f"{here}.{name}" for node in tree.body for name in _defined(node)}
    homes |= {alias.name: f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    assignments = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    names = sorted(ast.literal_eval(assignments["__all__"]), key=str.lower)
    if missing := [name for name in names if name not in homes]:
        raise PluginError(f"{init}: it is not known where {', '.join(missing)} is defined")
    return {name: homes[name] for name in names}


def _defined(node: ast.stmt) -> list[str]:
    """The names of a function, a class or an assignment, which may stand below an `if` or a `try`."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.If | ast.Try):
        return [name for inner in node.body for name in _defined(inner)]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def on_post_page(output: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """A page that loads anything from another server is an error."""
    if found := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from another server: {found[0]}")
    return output

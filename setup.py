"""What pyproject.toml cannot say: the README as the package index shows it, and the models inside the wheel."""

import re
import tomllib
from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOT = Path(__file__).parent
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#|mailto:)([^)\s]+)\)")


def with_absolute_links(text: str) -> str:
    """Links to files lead to the repository: `blob` for pages, `raw` for pictures."""
    return LINK.sub(
        lambda found: f"{found[1]}[{found[2]}]({SOURCE}/{'raw' if found[1] else 'blob'}/main/{found[3]})", text
    )


models = {
    f"lanczosnet.pretrained.{folder.name}": f"pretrained/{folder.name}" for folder in (ROOT / "pretrained").iterdir()
}
setup(
    long_description=with_absolute_links((ROOT / "README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    packages=[*find_namespace_packages("src", exclude=["*.egg-info*", "*__pycache__*"]), *models],
    package_dir={"": "src", **models},
    package_data={name: ["*.json", "*.safetensors"] for name in models},
)

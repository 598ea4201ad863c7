"""How Sphinx builds the site from these pages: `make docs`."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tools")]

from quiet_kernels import quiet_kernels  # noqa: E402

quiet_kernels()

project = "Weft"
author = "the authors of Weft"
copyright = "the authors of Weft"
try:
    release = version_of("weft")
except ModuleNotFoundError:  # built from a tree that is not installed
    release = ""

extensions = ["myst_nb"]
root_doc = "index"
exclude_patterns = ["README.md", "_build", "**.ipynb_checkpoints"]
html_theme = "furo"
html_title = "Weft"
html_theme_options = {"navigation_with_keys": True}

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"  # the outputs of the site are those of this build, not those that were committed
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`)*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def _links_within(page: Path, text: str) -> str:
    """Turn links that leave `docs/`, which the site cannot follow, into their text and the file's path.

    A link to a folder's README.md becomes one to the page that the site has in its place.
    """

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        file = (page.parent / target.partition("#")[0]).resolve()
        if file == HERE / "README.md":
            return f"[{words}]({'../' * (len(page.relative_to(HERE).parts) - 1)}index.md)"
        if file.is_relative_to(HERE) and file.suffix in (".md", ".ipynb"):
            return match[0]
        path = file.relative_to(HERE.parent).as_posix()
        return words if words.strip("`") in (path, file.name) else f"{words} (`{path}`)"

    parts = re.split(r"(^ *```.*?^ *```)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if i % 2 else LINK.sub(link, part) for i, part in enumerate(parts))


def _read(app: Any, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))
    if page.suffix != ".md":
        return
    if name == "index":
        source[0] = source[0].replace("<!-- README.md -->", (HERE / "README.md").read_text(encoding="utf-8"))
    if name == "explanation/decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"
    from reference_pages import expand

    source[0] = _links_within(page, expand(source[0]).replace("```mlir", "```text"))


def setup(app: Any) -> None:
    """Register what is done to each page before it is parsed."""
    app.connect("source-read", _read)

"""The tutorials run, and print what stands in them.

Their cells are run here one after the other, as Jupyter would, but in this process and without Jupyter. A cell that is
tagged `varies` prints times or what depends on the machine; of a picture only that it is one is compared.
"""

from __future__ import annotations

import ast
import io
import json
import linecache
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

TUTORIALS = sorted((Path(__file__).resolve().parent.parent / "docs" / "tutorials").glob("*.ipynb"))


def run_cell(source: str, name: str, space: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line, None if that is no expression."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec", dont_inherit=True), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), space)
    return printed.getvalue(), value


def words(text: str) -> str:
    """A text without what differs between displays: white space."""
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[] if p.name.startswith("1-") else pytest.mark.slow) for p in TUTORIALS],
    ids=lambda p: p.stem,
)
def test_prints_what_stands_in_it(path: Path) -> None:
    if "compat.install()" not in path.read_text(encoding="utf-8"):
        check(path)
        return  # the others change what `import triton` finds in their process
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, __file__, path], check=True, env=env)


def check(path: Path) -> None:
    """Run the cells of a tutorial, and compare."""
    space: dict[str, Any] = {"__name__": "__main__"}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(c for c in cells if c["cell_type"] == "code"):
        assert cell["outputs"] or cell["execution_count"], "this cell was never run: make notebooks"
        printed, value = run_cell("".join(cell["source"]), f"{path.stem}-{number}.py", space)
        if "varies" in cell["metadata"].get("tags", ()):
            continue
        streams = "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")
        assert words(printed) == words(streams)
        shown = next((o["data"] for o in cell["outputs"] if o["output_type"] == "execute_result"), None)
        if shown is None:
            assert value is None
        elif "text/html" in shown or "image/svg+xml" in shown:
            assert (
                "<svg" in (getattr(value, "_repr_html_", None) or value._repr_svg_)() or "<table" in value._repr_html_()
            )
        else:
            assert words(repr(value)) == words("".join(shown["text/plain"]))


def test_are_small() -> None:
    assert len(TUTORIALS) >= 1
    for path in TUTORIALS:
        assert path.stat().st_size < 150_000, path.name
        assert "/ipykernel" not in path.read_text(encoding="utf-8"), f"{path.name} holds a path of the run"


if __name__ == "__main__":
    check(Path(sys.argv[1]))

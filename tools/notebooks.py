"""Run the tutorials and write their outputs into them: `make notebooks`, after a change of a tutorial.

    python tools/notebooks.py [docs/tutorials/1-first-kernel.ipynb ...]      # all without names
    python tools/notebooks.py --from draft.md docs/tutorials/NAME.ipynb     # from Markdown: ```python blocks are cells

What is written is the same on every machine as far as the outputs are: no times of execution, no ids of processes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from quiet_kernels import quiet_kernels

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


def from_markdown(text: str) -> Any:
    """A notebook: blocks of Python are its code, with the words behind `python` as tags; the rest is text."""
    cells = []
    for part in re.split(r"^(```python(?: \w+)?\n.*?)^```\n", text, flags=re.DOTALL | re.MULTILINE):
        if part.startswith("```python"):
            head, _, source = part.partition("\n")
            tags = head.split()[1:]
            cells.append(nbformat.v4.new_code_cell(source.strip("\n"), metadata={"tags": tags} if tags else {}))
        elif part.strip():
            cells.append(nbformat.v4.new_markdown_cell(part.strip("\n")))
    return nbformat.v4.new_notebook(cells=cells)


def execute(notebook: Any) -> None:
    """Run the cells in order; outputs are those of this run, and ids count up."""
    NotebookClient(notebook, timeout=120, record_timing=False, store_widget_state=False).execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        if cell.cell_type == "code":
            cell.outputs = merged(cell.outputs)


def merged(outputs: list[Any]) -> list[Any]:
    """Outputs with what was printed in one piece, in however many pieces it came."""
    kept: list[Any] = []
    for output in outputs:
        if kept and output.output_type == "stream" and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    quiet_kernels()
    draft = None
    if arguments[:1] == ["--from"]:
        draft, arguments = Path(arguments[1]), arguments[2:]
    for path in [Path(name) for name in arguments] or sorted(TUTORIALS.glob("*.ipynb")):
        notebook = from_markdown(draft.read_text(encoding="utf-8")) if draft else nbformat.read(path, as_version=4)
        execute(notebook)
        nbformat.write(notebook, path)
        print(path.name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Pictures in a notebook that is run and exported by nbconvert, where it is installed: they are in what comes out."""

from __future__ import annotations

from typing import Any

import pytest

from weft.base import LayoutError
from weft.view import to_html, to_svg

CELLS = (
    "from weft.layouts import BlockedLayout, PaddedSharedLayout, plan_conversion\n"
    "layout = BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])\n"
    "layout",
    "layout.to_linear([32, 32])",
    "plan_conversion(layout, BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1]), [32, 32], 16, 'cuda:90')",
    "PaddedSharedLayout.with_identity_for([[16, 4]], [8, 16], [1, 0])",
)


@pytest.fixture(scope="module")
def notebook() -> Any:
    """A notebook after its cells were run by a kernel."""
    missing = "nbclient, nbconvert or ipykernel is not installed"
    nbformat, nbclient = (pytest.importorskip(name, reason=missing) for name in ("nbformat", "nbclient"))
    pytest.importorskip("ipykernel", reason=missing)
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    return book


def test_outputs_have_pictures(notebook: Any) -> None:
    for cell in notebook.cells:
        data = cell.outputs[0].data
        assert set(data) == {"text/html", "text/plain"} and "<svg" in data["text/html"]  # one picture, once
        assert len(data["text/html"].encode()) <= 60_000


@pytest.mark.parametrize("exporter", ["HTMLExporter", "MarkdownExporter"])
def test_exported(notebook: Any, exporter: str) -> None:
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    body, _ = getattr(nbconvert, exporter)().from_notebook_node(notebook)
    cut = body.index("BlockedLayout")  # below what the exporter itself brings
    pictures = body[cut:]
    assert pictures.count("<svg") >= len(CELLS) + 2  # a plan has one before and one after
    assert pictures.count("<path") > 4 * 32 and "<li><b>store</b>" in pictures
    for cell in notebook.cells:
        assert "<script" not in cell.outputs[0].data["text/html"]


@pytest.mark.parametrize("draw", [to_svg, to_html])
def test_what_is_no_layout_has_no_picture(draw: Any) -> None:
    with pytest.raises(LayoutError) as caught:
        draw("BlockedLayout([1], [32], [4], [0])")
    assert str(caught.value) == (
        "error: a picture needs a layout, got 'BlockedLayout([1], [32], [4], [0])' of type str\n"
        "hint: weft.view.parse_layout reads an expression"
    )

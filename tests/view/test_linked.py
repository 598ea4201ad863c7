"""Links from kernels, explanations and breakpoints to the layout page."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.cli import main
from weft.layouts import PaddedSharedLayout
from weft.view.linked import link_to


@weft.jit
def rows(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    cols = tl.arange(0, BLOCK)
    value = tl.load(x + cols[:, None] * BLOCK + cols[None, :])
    total = tl.sum(value, axis=1)
    tl.store(out + cols, total)


def test_a_kernel_its_explanation_and_a_breakpoint_lead_to_one_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, out = np.ones((32, 32), np.float32), np.zeros(32, np.float32)
    with weft.sim.debug("tl.store(out + cols, total)") as stops:
        made = rows[(1,)](x, out, BLOCK=32, target="sim:cuda:80")
    (link,) = [link for link in made.layouts if "value" in link.name]
    stopped = stops[0].layout("value")
    assert stopped.linear == link.linear and stopped.shape == link.shape == (32, 32)
    with pytest.raises(KeyError, match="no variable 'nothing'"):
        stops[0].layout("nothing")
    explained = rows.explain(x, out, BLOCK=32, grid=(1,), target="cuda:80")
    (tile,) = [tile for tile in explained.tiles if "value" in tile.remark.variables]
    assert tile.link.text == link.text and tile.link.element_bits == 32
    monkeypatch.chdir(tmp_path)
    _, *words = shlex.split(link.command)
    assert main(words) == 0
    page = (tmp_path / "layout.html").read_text(encoding="utf-8")
    assert all(f'"a":"{link.text}"' in text for text in (page, link.to_html()))
    assert len(link._repr_html_().encode()) <= 60_000 and str(link).endswith(link.command)


def test_memory_opens_on_its_banks() -> None:
    padded = PaddedSharedLayout.with_identity_for([[32, 4]], [32, 32], [1, 0])
    page = link_to(padded, (32, 32), 16, "buffer", padded.interval_padding_pairs).to_html()
    assert '"opens":"banks"' in page and '"pads":[[32,4]]' in page

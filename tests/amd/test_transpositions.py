"""A tile that is loaded along its rows and stored along its columns: threads transpose blocks, no lanes exchange."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def turned(x, y, out, m, n, BLOCK: tl.constexpr, BOTH: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * n + j[None, :]) + tl.load(y + i[:, None] * n + j[None, :])
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile))
    if BOTH:
        tl.store(x + i[:, None] * n + j[None, :], tile)


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize(("kind", "both"), [("fp16", False), ("i8", False), ("fp16", True)])
def test_no_lanes_exchange(target: str, kind: str, both: bool) -> None:
    """Unless the tile is stored along its rows as well: then no dimension is the one that it is wanted along."""
    kinds = dict.fromkeys(("x", "y", "out"), f"*{kind}") | {"m": "i32", "n": "i32"}
    facts = {(place,): [["tt.divisibility", 16]] for place in range(5)}
    source = weft.ASTSource(turned, kinds, {"BLOCK": 64, "BOTH": both}, facts)
    lane = str(weft.compile(source, f"hip:{target}").asm["lane"])
    loads = re.findall(r"load .*space=global, vector=(\d+)", lane)
    assert set(loads) == {"16" if both and kind == "i8" else "4" if kind == "i8" and "gfx9" in target else "8"}
    assert bool(re.search(r"isa=(dpp|ds_|permlane)", lane)) is both


@pytest.mark.parametrize(("target", "kind"), [("sim:hip:gfx942", np.int8), ("sim:hip:gfx1201", np.float16)])
def test_what_is_stored(target: str, kind: type) -> None:
    x, y = np.random.default_rng(1).integers(-50, 50, (2, 64, 128)).astype(kind)
    out = np.zeros((128, 64), kind)
    with weft.target(target):
        turned[1, 2](x, y, out, 64, 128, BLOCK=64, BOTH=False)
    assert (out == (x + y).T).all()

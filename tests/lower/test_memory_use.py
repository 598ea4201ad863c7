"""Barriers and shared memory of the layout IR that Triton wrote: never more than Triton takes for it.

Bytes may take the place of barriers: a few anywhere, and any number if as many blocks run at a time with them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weft.ir.gpu
from weft.base import OutOfResources, Unsupported
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.lower.placement import ROOM

DATA = Path(__file__).resolve().parent.parent / "data"
TRITON = json.loads((DATA / "triton_memory.json").read_text(encoding="utf-8"))
MORE_BYTES = {
    "gluon_collectives": "a gather goes through memory; Triton does it by shuffles",
}
"""Where more memory is used than Triton uses; the reason."""


def program_of(name: str) -> LaneProgram:
    assert weft.ir.gpu.ttg is not None
    path = DATA / "ttgir" / f"{name}.ttgir"
    try:
        return lower(parse_module(path.read_text(encoding="utf-8"), path.name))
    except Unsupported as error:
        pytest.skip(str(error.message))


@pytest.mark.parametrize("name", TRITON)
@pytest.mark.thinned(3)
def test_never_more_than_triton(name: str) -> None:
    program, theirs = program_of(name), TRITON[name]
    found = [op for op in program.body.walk() if op.name == "barrier" and op.attrs.get("of") != "global"]
    barriers = sum(op.attrs["scope"] == "block" for op in found)  # Triton has none for global memory
    assert barriers <= theirs["barriers"]
    sizes = program.shared_bytes, theirs["bytes"]
    fit, fit_theirs = (program.machine.blocks_at_a_time(program.warps * program.lanes, size) for size in sizes)
    if name not in MORE_BYTES and not (barriers < theirs["barriers"] and fit >= fit_theirs):
        assert program.shared_bytes <= theirs["bytes"] + ROOM


TOO_MUCH = """
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
!memory = !ttg.memdesc<256x256xf16, #shared, #smem>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k() attributes {noinline = false} {
    %x = arith.constant dense<0.0> : tensor<256x256xf16, #blocked> loc("k.py":3:4)
    %a = ttg.local_alloc %x : (tensor<256x256xf16, #blocked>) -> !memory loc("k.py":4:8)
    %b = ttg.local_alloc %x : (tensor<256x256xf16, #blocked>) -> !memory loc("k.py":5:8)
    %y = ttg.local_load %a : !memory -> tensor<256x256xf16, #blocked> loc("k.py":6:8)
    %z = ttg.local_load %b : !memory -> tensor<256x256xf16, #blocked> loc("k.py":7:8)
    tt.return
  }
}
"""


def test_too_much_says_what_needs_it() -> None:
    with pytest.raises(OutOfResources) as caught:
        lower(parse_module(TOO_MUCH, "k.ttgir"))
    assert str(caught.value) == (
        "out of resource: shared memory, Required: 262144, Hardware limit: 166912.\n"
        "   bytes      at  what                     in use\n"
        "  131072       0  local_alloc of k.py:4:9  lines 4 to 6\n"
        "  131072  131072  local_alloc of k.py:5:9  lines 5 to 7\n"
        "hint: the largest buffer, of 131072 bytes, is a tile (or the stages of one): smaller tiles (BLOCK sizes), or "
        "fewer stages (num_stages)"
    )
    assert (caught.value.required, caught.value.limit, caught.value.name) == (262144, 166912, "shared memory")

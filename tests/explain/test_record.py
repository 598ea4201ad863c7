"""What is in an explanation: rows joined with counts, JSON there and back, the whole text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import like
from weft.explain import Explanation, Finding

from .kernels import attention, histogram, matmul, reduction, softmax, transpose


def shown(e: Explanation) -> list[str]:
    """The text without the place of this file, and without the registers, of which the assembler decides."""
    text = re.sub(r" \(\S*kernels\.py:\d+\)", "", str(e))
    text = re.sub(r"\n.*  assembled", "", text)
    return re.sub(r"(\d+|not known).* of a thread, ", "... of a thread, ", text).splitlines()


def of_softmax(columns: int = 1000, stride: int = 1000, target: str = "cuda:90", **options: Any) -> Explanation:
    x = like((4096, stride), "fp32")
    return softmax.explain(x, x, stride, columns, BLOCK=1024, grid=(4096,), target=target, **options)


def test_the_whole_text() -> None:
    assert shown(of_softmax(target="cuda:80")) == Path(__file__).with_name("softmax.txt").read_text().splitlines()


def test_counts_are_those_of_the_whole_grid() -> None:
    e = of_softmax()
    assert e.counts.exact and e.counts.programs == 4096 and e.counts.counted < 20
    assert e.counts["global_load_bytes"] == 4096 * 1000 * 4
    load, store = e.accesses
    assert load.sectors == (4096 * 125, 4096 * 125) and store.remark.access == "store"
    assert load.remark.bytes == 16 and not load.in_loop


def test_json_there_and_back() -> None:
    for e in (of_softmax(), of_softmax(stride=1001), of_softmax(target="cpu")):
        assert Explanation.from_json(e.to_json()) == e
    plain = json.loads(of_softmax().to_json())
    (tile,) = plain["tiles"]
    assert tile["remark"]["span"]["line"] == plain["span"]["line"] + 5 and tile["remark"]["kind"] == "layout"


@pytest.mark.parametrize("text", ["{}", "[]", '{"version": 0}', '{"version": 1, "kernel": "k"}'])
def test_what_is_no_explanation(text: str) -> None:
    with pytest.raises(ValueError, match="this is no "):
        Explanation.from_json(text)


def test_why_an_access_is_narrow() -> None:
    x = like((4096, 4097), "fp16")
    e = transpose.explain(x, x, 4097, SIZE=64, grid=(64, 64), target="cuda:90")
    load, _ = e.accesses
    assert (load.remark.bytes, load.remark.most, load.remark.value) == (2, 16, "stride")
    sectors, least = load.sectors
    assert sectors > 1.4 * least
    (conversion,) = e.conversions
    assert conversion.remark.plan == "shared" and not conversion.in_loop


def test_a_picture_of_a_layout() -> None:
    (tile, *_) = of_softmax().tiles
    assert tile.shape == (1024,) and "0:0" in tile.picture()


def test_a_product() -> None:
    a = like((4096, 4096), "fp16")
    e = matmul.explain(a, a, a, 4096, 4096, 4096, BM=128, BN=128, BK=64, grid=(32, 32), target="cuda:90")
    assert e.counts.exact and e.counts["kind:wgmma.m64n128k16.f32.f16.f16.tb"] == 1024 * 64 * 4 * 2 * 4
    assert e.occupancy is not None and e.occupancy.limit == "shared memory" and e.occupancy.blocks == 2
    assert [a.in_loop for a in e.accesses] == [True, True, False]
    assert [c.in_loop for c in e.conversions] == [False]


def test_attention() -> None:
    q = like((4, 1024, 64), "fp16")
    e = attention.explain(
        q, q, q, q, 0.125, 1024, HEAD=64, BM=128, BN=64, grid=(8, 4), target="cuda:90", made_tensors=False
    )
    assert e.counts.exact and e.counts["global_load_bytes"] == 32 * (128 + 2 * 1024) * 64 * 2


def test_a_reduction_of_inductor() -> None:
    x, out = like((3000, 1000), "fp32"), like(3000, "fp32")
    e = reduction.explain(x, out, 3000, 1000, BLOCK=8, PART=128, grid=(375,), target="cuda:90")
    assert e.counts.exact and e.counts["global_load_bytes"] == 3000 * 1000 * 4


def test_what_depends_on_data_is_said() -> None:
    x, bins = like(1 << 20, "i32"), like(64, "i32")
    e = histogram.explain(x, bins, BLOCK=1024, grid=(1024,), target="cuda:90")
    assert not e.counts.exact and "depend on data" in e.counts.note


def test_arrays_are_not_touched() -> None:
    x = np.ones((16, 1000), np.float32)
    before = x.copy()
    e = softmax.explain(x, x, 1000, 1000, BLOCK=1024, grid=lambda meta: (meta["n"] // 100,), target="sim:cuda:90")
    assert e.grid == (10, 1, 1) and e.target == "cuda:90" and (x == before).all()
    assert e.arguments["x"] == "*fp32[16x1000]" and e.arguments["BLOCK"] == "1024"


@pytest.mark.parametrize("target", ["cpu", "hip:gfx942", "xpu:pvc", "cuda:100"])
def test_other_machines(target: str) -> None:
    e = of_softmax(target=target)
    assert e.target == target and e.accesses and str(e)
    assert e.counts["global_load_bytes"] > 0 and bool(e.counts["instructions"]) == (target != "cpu")
    if e.time is None:
        assert e.no_time.startswith("not calibrated for ") and f"time: {e.no_time}" in str(e)
        assert all(e.no_time in text for text in (e.to_html(), e.to_json(), e._repr_html_()))


def test_decorators() -> None:
    ruled = weft.heuristics({"BLOCK": lambda args: weft.next_power_of_2(args["n"])})(softmax)
    x = like((64, 1000), "fp32")
    assert ruled.explain(x, x, 1000, 1000, grid=(64,), target="cuda:80").arguments["BLOCK"] == "1024"
    two = weft.autotune([weft.Config({"BLOCK": b}) for b in (1024, 2048)], ["n"])(softmax)
    with pytest.raises(weft.LaunchError, match="2 configurations are tuned"):
        two.explain(x, x, 1000, 1000, grid=(64,), target="cuda:80")


def test_a_finding_as_text() -> None:
    found = Finding("narrow-access", None, "a load of 2 bytes", "`n` is odd", "pad rows", 3.0)
    assert str(found) == "narrow-access: a load of 2 bytes: `n` is odd (about 3.0 us); fix: pad rows"


class OnGPU:
    """An array in the memory of a GPU, as it tells a launch of itself."""

    def __init__(self, *shape: int, address: int = 1 << 40) -> None:
        self.shape = shape
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "<f4", "data": (address, False), "version": 3}


def test_arrays_of_a_gpu_need_not_be_read() -> None:
    """They are shapes and addresses: the same explanation as without them, but for an address that is not aligned."""
    there, apart = OnGPU(4096, 1000), OnGPU(4096, 1000, address=(1 << 40) + 4)
    e = softmax.explain(there, there, 1000, 1000, BLOCK=1024, grid=(4096,), target="cuda:90")
    assert e == of_softmax()
    narrow = softmax.explain(apart, apart, 1000, 1000, BLOCK=1024, grid=(4096,), target="cuda:90")
    assert [f.code for f in narrow.findings if f.code == "narrow-access"] or narrow.accesses != e.accesses


@weft.jit
def aimed(x, out, target, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + target)


def test_a_parameter_may_be_called_target() -> None:
    x = like(1024, "fp32")
    with weft.target("cuda:90"):
        e = aimed.explain(x, x, 3, BLOCK=1024, grid=(1,))
    assert e.target == "cuda:90" and e.arguments["target"] == "3"

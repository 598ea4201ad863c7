"""The questions that a kernel engineer asks, each answered for a kernel that was written for nothing else."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

import weft
import weft.language as tl
from weft import like
from weft.explain import Explanation
from weft.explain.next_step import next_text

from .kernels import attention, matmul, reduction, softmax, transpose


@cache
def of_matmul(**more: Any) -> Explanation:
    a = like((4096, 4096), "fp16")
    blocks = {"BM": 128, "BN": 128, "BK": 64, "grid": (32, 32), "target": "cuda:90"}
    return matmul.explain(a, a, a, 4096, 4096, 4096, **{**blocks, **more})


def test_which_layouts_were_chosen_and_why() -> None:
    """A line, the variable, the shape, the layout and its picture, who wanted it, who else wished what."""
    (total,) = [t for t in of_matmul().tiles if "total" in t.remark.variables]
    assert total.shape == (128, 128) and "nvidia_mma" in total.layout and "0:0" in total.picture()
    assert str(total.remark.chosen_by) == f"tt.dot on line {total.remark.chosen_by.span.line}"  # type: ignore[union-attr]
    assert [wish.site.what for wish in total.remark.others] == ["tt.store"]
    (row,) = [line for line in str(of_matmul()).splitlines() if "total" in line and "nvidia_mma" in line]
    assert "the matrix instruction leaves its sums so" in row and re.search(r"conversion of \d+ cycles by shared$", row)


def test_why_an_access_is_narrow() -> None:
    x = like((64, 1001), "fp32")
    e = softmax.explain(x, x, 1001, 1001, BLOCK=1024, grid=(64,), target="cuda:80")
    told = " ".join(f"{f.why} {f.fix}" for f in e.findings if f.code == "narrow-access")
    rows = [a.remark.message for a in e.accesses]
    assert "1001 % 4 = 1" in told or any("wherever the row begins" in row for row in rows)
    y = like((4096, 4097), "fp16")
    (load, _) = transpose.explain(y, y, 4097, SIZE=64, grid=(64, 64), target="cuda:90").accesses
    assert (load.remark.bytes, load.remark.most, load.remark.value) == (2, 16, "stride")  # type: ignore[union-attr]


def test_what_a_conversion_costs_and_who_caused_it() -> None:
    x = like((4096, 4096), "fp16")
    (each,) = transpose.explain(x, x, 4096, SIZE=64, grid=(64, 64), target="cuda:90").conversions
    r = each.remark
    assert isinstance(r, weft.remarks.Conversion)
    assert (r.made_by.what, [s.what for s in r.wanted_by], r.plan) == ("tt.load", ["tt.store"], "shared")
    assert r.cycles > 0 and [a.what for a in r.considered if a.cycles is None] == ["shuffles"] and not each.in_loop


def test_where_bank_conflicts_are() -> None:
    """test_limits.py has a kernel with some; a transposition has none, and each access says the least that it takes."""
    x = like((4096, 4096), "fp16")
    e = transpose.explain(x, x, 4096, SIZE=64, grid=(64, 64), target="cuda:80")
    assert e.counts["shared_load_wavefronts"] + e.counts["shared_store_wavefronts"] == e.counts["shared_ideal"] > 0


def test_registers_shared_memory_and_occupancy() -> None:
    e = of_matmul()
    at_product = next(held for held in e.registers if "total" in held.values)
    assert at_product.values["total"] == 128
    first, last = at_product.lives["total"]
    assert first < at_product.span.line <= last
    o = e.occupancy
    assert o is not None and (o.blocks, o.limit, o.shared_bytes) == (2, "shared memory", 98304 + 3 * 8)  # and barriers
    assert o.next_step == "76,800 bytes of shared memory, or fewer (num_stages=2)"
    first = e.buffers[0].remark
    assert first.bytes == 49152 and first.first is not None and first.last is not None


def test_why_it_was_compiled_again() -> None:
    x = np.ones((16, 1024), np.float32)
    kernel = weft.jit(softmax.fn)
    for n in (1000, 1024):
        kernel[(16,)](x, x.copy(), 1024, n, BLOCK=1024)
    (again,) = kernel.explain_recompiles()
    assert [change.name for change in again.changes] == ["n"]


def test_what_hardware_counters_will_say() -> None:
    q = like((4, 1024, 64), "fp16")
    e = attention.explain(
        q, q, q, q, 0.125, 1024, HEAD=64, BM=128, BN=64, grid=(8, 4), target="cuda:90", made_tensors=False
    )
    assert e.counts.exact and e.counts["global_load_sectors"] == 32 * (128 + 2 * 1024) * 64 * 2 // 32
    assert e.time is not None and set(e.time.resources) >= {
        "DRAM",
        "L2",
        "matrix units",
        "special functions",
        "latency",
    }
    assert e.occupancy is not None and 0 < e.occupancy.waves < 1


def test_a_reduction_as_inductor_writes_it() -> None:
    x, out = like((65536, 1000), "fp32"), like(65536, "fp32")
    e = reduction.explain(x, out, 65536, 1000, BLOCK=8, PART=128, grid=(8192,), target="cuda:90")
    assert e.time is not None and e.time.bound == "DRAM"
    assert e.counts["global_load_bytes"] == 65536 * 1000 * 4
    assert next_text(e).startswith("next: bound by DRAM at ") and "only fewer bytes make it faster" in next_text(e)


@weft.jit
def copied(x, out, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * STEP))


def test_why_this_configuration() -> None:
    """What is predicted of each before anything is measured; then what was measured, and what was pruned."""
    steps = (8, 1, 4)

    def prune(configs: list[weft.Config], *_: object, **__: object) -> list[weft.Config]:
        return configs[:2]

    times = iter(((0.5, 0.4, 0.6), (0.2, 0.1, 0.3)))
    configs = [weft.Config({"STEP": step, "BLOCK": 1024}) for step in steps]
    tuner = weft.autotune(
        configs, [], prune_configs_by={"early_config_prune": prune}, do_bench=lambda run, quantiles: next(times)
    )(copied)
    x = like(1 << 24, "fp32")
    before = tuner.explain_configs(x, x, grid=(1 << 10,), target="cuda:90")
    assert before[0].config.kwargs["STEP"] == 1 and {c.state for c in before} == {"not measured"}
    assert str(before).splitlines()[0].split() == ["configuration", "state", "measured", "predicted", "bound", "by"]
    array = np.ones(1 << 14, np.float32)
    tuner[(2,)](array, array.copy())
    after = tuner.explain_configs(array, array, grid=(2,), target="cuda:90")
    assert [(c.config.kwargs["STEP"], c.state) for c in after] == [(1, "chosen"), (8, "measured"), (4, "pruned")]
    assert after[0].measured == (200.0, 100.0, 300.0)


@weft.jit
def limited(x, most, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    tl.store(x + i, tl.minimum(tl.load(x + i), most))


def test_a_float_may_be_infinite() -> None:
    e = limited.explain(weft.like((64,), "fp32"), float("inf"), grid=(1,), target="cuda:90", N=64)
    assert e.time is not None

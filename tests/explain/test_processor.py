"""Explanations for the CPU: bytes are counted, and times follow from rates that were measured, here made up."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import like
from weft.base.remarks import VectorAccess
from weft.cli import main
from weft.explain import Explanation, processor
from weft.explain.next_step import next_text
from weft.explain.processor import Rates
from weft.explain.roofline import roofline_of
from weft.runtime import calibrating, calibration_kernels, explaining

from .kernels import transpose

RATES = Rates(
    "a processor", 2, launch=5.0, program=0.01, sizes=(1 << 16, 1 << 26), read=(1e4, 1e4), written=(5e3, 5e3),
    both=(1.0, 0.5), in_place=(1e4, 1e4), alone=0.75, lengths=(128, 4096), slow_read=(4.0, 2.0),
    slow_written=(3.0, 1.5), of_four=0.5, looped=1.25, by_rows=(1.2, 1.5), turned=(1.5, 1.0), turned_apart=(3.0, 2.0),
    again=1e5, far=5e4, simple=1e6, special=1e6, divided=1e5, beside=2.0, rounded=1e6, reduction=0.01, together=1.5,
    product=1e6, product_16=2e6,
)  # fmt: skip


def of_transpose(monkeypatch: pytest.MonkeyPatch, rates: Rates | None) -> Explanation:
    monkeypatch.setattr(explaining, "calibrated", lambda: rates)
    x = like((4096, 4096), "fp16")
    return transpose.explain(x, x, 4096, SIZE=64, grid=(64, 64), target="cpu")


def test_bytes_by_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 MiB are read at 10 GB/s and as many written at 5 GB/s, which takes a copy half of both; in tiles longer."""
    e = of_transpose(monkeypatch, RATES)
    size = 4096 * 4096 * 2
    assert (e.counts["global_load_bytes"], e.counts["global_store_bytes"]) == (size, size)
    assert e.time is not None and e.time.bound == "memory" and e.time.dram_bytes == 2 * size
    memory = (size / 1e4 + size / 5e3) / 2 * 1.5  # rows of 128 bytes, which begin alike in their pages
    assert e.time.resources["memory"] == pytest.approx(memory, rel=1e-3)
    assert e.time.microseconds == pytest.approx(5 + 64 * 64 * 0.01 + memory, rel=0.01)
    assert e.findings == () and e.occupancy is None and len(e.counts.total) == 2
    assert "2 threads" in e.time.device and next_text(e).startswith("next: bound by memory")
    assert str(e) and e.to_html() and e._repr_html_() and Explanation.from_json(e.to_json()) == e


def test_transposed_tiles_by_where_rows_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the result that are no whole pages apart take longer, by the length of the rows of tiles."""
    monkeypatch.setattr(explaining, "calibrated", lambda: RATES)
    for stride, times in ((4096, 1.0), (4100, 2.0)):
        x = like((4100, stride), "fp32")
        time = transpose.explain(x, x, stride, SIZE=64, grid=(64, 64), target="cpu").time
        assert time is not None
        memory = 4 * 4096**2 * (1 / 1e4 + 1 / 5e3) / 2 * times  # stored around the caches
        assert time.resources["memory"] == pytest.approx(memory, rel=0.01)


def test_few_programs_have_few_threads() -> None:
    """One of four threads reads half of what four do, two the square root of that; four programs have all."""
    stretched = [processor._stretched(programs, 4, 0.5) for programs in (1, 2, 4, 5, 400)]
    assert stretched == pytest.approx([0.25 / 0.5 * 4, 0.5 / 0.5**0.5 * 2, 1.0, (1 + 0.25 / 0.5) * 4 / 5, 1.0])
    assert processor._stretched(5, 4, 0.25) == pytest.approx(2 * 4 / 5)  # arithmetic: two rounds


def test_rates_between_sizes_and_of_copies() -> None:
    """A copy that stores around the caches, as of the largest size, takes half of both; another all of it."""
    assert RATES.microseconds(1 << 20, 0) == pytest.approx((1 << 20) / 1e4)
    assert RATES.microseconds(1 << 25, 1 << 25) == pytest.approx(0.5 * ((1 << 25) / 1e4 + (1 << 25) / 5e3))
    assert RATES.microseconds(1 << 24, 1 << 24) == pytest.approx((1 << 24) / 1e4 + (1 << 24) / 5e3)
    assert RATES.microseconds(1 << 20, 0, slow=(2.0, 1.0)) == pytest.approx(2 * (1 << 20) / 1e4)
    assert RATES.microseconds(0, 0) == 0
    assert RATES.slow("load", 4096) == 2.0 and 2.0 < RATES.slow("load", 1024) < 4.0
    assert 1.0 < RATES.slow("store", 8192) < 1.5 and RATES.slow("store", 1 << 20) == 1.0


def time_of(kernel: Any, *args: Any, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Any:
    monkeypatch.setattr(explaining, "calibrated", lambda: RATES)
    time = kernel.explain(*args, target="cpu", **more).time
    assert time is not None
    return time


@weft.jit
def columns_added(x, out, rows, columns, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        total += tl.load(x + row * columns + j)
    tl.store(out + j, total)


@weft.jit
def rows_added(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + tl.program_id(0) * columns + start + i)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@weft.jit
def rows_scaled(x, out, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.exp(tl.load(x + at))
    tl.store(out + at, value / tl.sum(value, 0))


def test_what_goes_from_page_to_page_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 4 KiB of columns that are added take twice as long as rows that are read from end to end."""
    x, size = like((1024, 4096), "fp32"), 4 << 22
    by_columns = time_of(columns_added, x, x, 1024, 4096, BLOCK=1024, grid=(4,), monkeypatch=monkeypatch)
    by_rows = time_of(rows_added, x, x, 4096, BLOCK=1024, grid=(1024,), monkeypatch=monkeypatch)
    assert by_rows.resources["memory"] == pytest.approx(1.25 * size / 1e4, rel=0.01)  # a loop that carries a tile
    assert by_columns.resources["memory"] == pytest.approx(2 * 1.25 * size / 1e4, rel=0.01)
    assert by_rows.resources["caches"] == pytest.approx(2 * size / RATES.again, rel=0.05)  # it is written and read


@weft.jit
def some_columns(x, out, wide, columns, first, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * columns + i, tl.load(x + row * wide + first + i, mask=i < columns), mask=i < columns)


def test_rows_that_begin_anywhere_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several loads that touch the same sectors, word by word, bring them from memory once."""
    x, out = like((2000, 4097), "fp32"), like((2000, 1000), "fp32")
    monkeypatch.setattr(explaining, "calibrated", lambda: RATES)
    time = some_columns.explain(x, out, 4097, 1000, 3000, BLOCK=1024, grid=(2000,), target="cpu").time
    assert time is not None and time.dram_bytes == pytest.approx(2 * 2000 * 1000 * 4, rel=0.05)


def test_what_is_reduced_before_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    x, size = like((1024, 4096), "fp32"), 4 << 22
    time = time_of(rows_scaled, x, x, COLUMNS=4096, grid=(1024,), monkeypatch=monkeypatch)
    assert time.resources["memory"] == pytest.approx(1.5 * (size / 1e4 + size / 5e3), rel=0.35)
    assert time.resources["arithmetic"] > 1024 * RATES.reduction + (1 << 22) / RATES.special


def test_a_processor_that_is_not_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text, the page and JSON say so; other machines are in test_record.py."""
    e = of_transpose(monkeypatch, None)
    assert e.time is None and "time: not calibrated for " in str(e) and "not calibrated for " in e.to_html()
    assert json.loads(e.to_json())["no_time"].startswith("not calibrated for ")
    assert e.counts["global_load_bytes"] > 0 and "not calibrated" in e._repr_html_()


def test_rates_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """They are those of a processor and a number of threads."""
    monkeypatch.setattr(calibrating, "path_of", lambda threads: tmp_path / f"{threads}.json")
    monkeypatch.setattr(calibrating, "_measured", lambda threads: RATES)
    monkeypatch.setattr(calibrating, "processor", lambda: "a processor")
    assert calibrating.calibrated() is None and main(["calibrate", "--show"]) == 1
    assert main(["calibrate"]) == 0 and calibrating.calibrated() == RATES
    assert "GB/s" in capsys.readouterr().out
    monkeypatch.setattr(calibrating, "processor", lambda: "another one")
    assert calibrating.calibrated() is None


def test_what_the_kernels_of_the_calibration_compute() -> None:
    x, out = np.arange(8192, dtype=np.float32), np.zeros(8192, np.float32)
    calibration_kernels.copied[(2,)](x, out, BLOCK=4096)
    assert (out == x).all()
    calibration_kernels.changed[(2,)](x, out, BLOCK=4096)
    assert (out == x + 1).all()
    calibration_kernels.read[(2,)](x, out, BLOCK=4096)
    assert out[0] == x[:4096].sum()


@weft.jit
def doubled_twice(x, chosen, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, 2 * tl.load(x + i, mask=mask & (tl.load(chosen + i, mask=mask) != 0)), mask=mask)
    tl.store(x + i, 2 * tl.load(out + i, mask=mask), mask=mask)


@weft.jit
def product(a, b, out, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        left = tl.load(a + i[:, None] * K + k + i[None, :])
        total += tl.dot(left, tl.load(b + (k + i[:, None]) * BLOCK + i[None, :]))
    tl.store(out + i[:, None] * BLOCK + i[None, :], total)


def test_the_tables_that_a_cpu_has() -> None:
    """Vector widths, masks, what is kept in memory, why loops are apart, and how products are packed."""
    x = like(1 << 20, "fp32")
    text = str(doubled_twice.explain(x, x, x, 1 << 20, BLOCK=1024, grid=(1024,), target="cpu", vector_bits=256))
    assert "Loops over tiles" in text and "8 x 32 bits" in text and "4 warps" not in text
    assert "without masks, for tiles that lie wholly within their bounds" in text
    assert "under a mask for each vector, as it depends on what is loaded" in text
    assert "it loads again what these have just stored" in text
    m = like((64, 256), "fp32")
    text = str(product.explain(m, m, m, 256, BLOCK=64, grid=(1,), target="cpu"))
    assert "Products\n" in text and "64x64x64" in text and "the loop carries it" in text


def test_a_roofline_by_the_rates_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two multiplications for 20 bytes: far under the slope's end."""
    monkeypatch.setattr(explaining, "calibrated", lambda: RATES)
    x = like(1 << 20, "fp32")
    e = doubled_twice.explain(x, x, x, 1 << 20, BLOCK=1024, grid=(1024,), target="cpu")
    found = roofline_of(e)
    assert found is not None and e.time is not None and found.what == "vectors"
    ((memory, bytes, rate),) = found.memories
    assert memory == "memory" and bytes == e.time.dram_bytes
    assert found.peak == pytest.approx(RATES.simple / 1000, rel=1e-3) and rate < 20
    assert found.rate < found.operations / bytes * rate  # below the slope
    assert "Roofline" in e.to_html()


def test_how_far_accesses_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of a tile, how far they are apart, and how far an iteration goes on: numbers, or such times arguments."""
    x = like((1024, 4096), "fp32")

    def said(kernel: Any, *args: Any, **more: Any) -> dict[str, tuple[int, Any, Any]]:
        found = kernel.explain(*args, target="cpu", **more).remarks.of(VectorAccess)
        return {r.access: (r.run, r.apart, r.turn) for r in found}

    assert said(columns_added, x, x, 1024, 4096, BLOCK=1024, grid=(4,))["load"] == (1024, (0, ""), (1, "columns"))
    assert said(rows_added, x, x, 4096, BLOCK=1024, grid=(4,))["load"] == (1024, (0, ""), (1024, ""))
    assert said(transpose, x, x, 4096, SIZE=64, grid=(64, 16)) == {
        "load": (64, (1, "stride"), (0, "")), "store": (64, (1, "stride"), (0, ""))
    }  # fmt: skip
    m = like((64, 256), "fp32")
    walked = said(pointers_moved, m, m, 256, BLOCK=64, grid=(1,))
    assert walked["load"] == (64, (1, "stride"), (64, ""))


@weft.jit
def pointers_moved(x, out, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = x + i[:, None] * stride + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(4):
        total += tl.exp(tl.load(at))
        at += BLOCK
    tl.store(out + i[:, None] * BLOCK + i[None, :], total)


@weft.jit
def blended(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * tl.load(y + i) + 1.0)


def test_operations_on_bfloat16_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 1 << 20
    narrow, wide = (
        time_of(blended, *[like(n, dtype)] * 3, BLOCK=1024, grid=(n // 1024,), monkeypatch=monkeypatch)
        for dtype in ("bf16", "fp32")
    )
    more = narrow.resources["arithmetic"] - wide.resources["arithmetic"]
    assert 1.9 * n / RATES.rounded < more < 4 * n / RATES.rounded

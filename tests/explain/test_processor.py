"""Explanations for the CPU: bytes are counted, and times follow from rates that were measured, here made up."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import like
from weft.cli import main
from weft.explain import Explanation
from weft.explain.next_step import next_text
from weft.explain.processor import Rates
from weft.explain.roofline import roofline_of
from weft.runtime import calibrating, explaining

from .kernels import transpose

RATES = Rates(
    "a processor", 2, launch=5.0, program=0.01, sizes=(1 << 16, 1 << 26), read=(1e4, 1e4), written=(5e3, 5e3),
    both=(1.0, 0.5), in_place=(1e4, 1e4), again=1e5, simple=1e6, special=1e6,
)  # fmt: skip


def of_transpose(monkeypatch: pytest.MonkeyPatch, rates: Rates | None) -> Explanation:
    monkeypatch.setattr(explaining, "calibrated", lambda: rates)
    x = like((4096, 4096), "fp16")
    return transpose.explain(x, x, 4096, SIZE=64, grid=(64, 64), target="cpu")


def test_bytes_by_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 MiB are read at 10 GB/s and as many written at 5 GB/s, which takes a copy half of both."""
    e = of_transpose(monkeypatch, RATES)
    size = 4096 * 4096 * 2
    assert (e.counts["global_load_bytes"], e.counts["global_store_bytes"]) == (size, size)
    assert e.time is not None and e.time.bound == "memory" and e.time.dram_bytes == 2 * size
    memory = (size / 1e4 + size / 5e3) / 2
    assert e.time.resources["memory"] == pytest.approx(memory, rel=1e-3)
    assert e.time.microseconds == pytest.approx(5 + 64 * 64 * 0.01 + memory, rel=0.01)
    assert e.findings == () and e.occupancy is None and len(e.counts.total) == 2
    assert "2 threads" in e.time.device and next_text(e).startswith("next: bound by memory")
    assert str(e) and e.to_html() and e._repr_html_() and Explanation.from_json(e.to_json()) == e


def test_rates_between_sizes_and_of_copies() -> None:
    assert RATES.microseconds(1 << 20, 0) == pytest.approx((1 << 20) / 1e4)
    assert RATES.microseconds(1 << 25, 1 << 25) == pytest.approx(0.5 * ((1 << 25) / 1e4 + (1 << 25) / 5e3))
    assert RATES.microseconds(0, 0) == 0


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
    calibrating._copied[(2,)](x, out, BLOCK=4096)
    assert (out == x).all()
    calibrating._changed[(2,)](x, out, BLOCK=4096)
    assert (out == x + 1).all()
    calibrating._read[(2,)](x, out, BLOCK=4096)
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
    assert found.peak == pytest.approx(RATES.simple / 1000, rel=1e-3) and rate <= 10
    assert found.rate < found.operations / bytes * rate  # below the slope
    assert "Roofline" in e.to_html()

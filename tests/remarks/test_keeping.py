"""Remarks are kept with the kernel and its entry of the cache, wherever it is compiled and whatever asks for it."""

from __future__ import annotations

import json
import linecache
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import Span
from weft.compiler import IRSource
from weft.remarks import KINDS, AccessWidth, Remarks
from weft.runtime import knobs

from .telling import compiled, told


@weft.jit
def transposed(x, out, s, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    tl.store(out + j * SIZE + i, tl.load(x + i * s + j))


CONVERSION = [
    "k.py:5:34: conversion: 64x64xf32 of tt.load on line 5, wanted otherwise by tt.store on line 5: by shared, "
    "PRICE cycles, 16384 bytes of shared memory; not shuffles (not possible: elements go from one warp to another)"
]
BUFFER = ["k.py:5:34: shared buffer: 16384 bytes for a conversion, at byte 0, in use on line 5"]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield tmp_path


def made(target: str = "cuda:80", **options: Any) -> Any:
    return compiled(transposed, target, "*fp32 *fp32 i32", {"SIZE": 64}, "x out s", **options)


def priced(lines: list[str]) -> list[str]:
    """Lines without the price, which is measured anew from time to time."""
    return [re.sub(r"\d+ cycles", "PRICE cycles", line) for line in lines]


def test_conversion_and_buffer() -> None:
    kernel = made()
    assert priced(told(kernel, "conversion")) == CONVERSION
    assert told(kernel, "shared buffer") == BUFFER
    (conversion,) = kernel.remarks.of(KINDS["conversion"])
    blocked = "#ttg.blocked<{sizePerThread = [%s], threadsPerWarp = [%s], warpsPerCTA = [%s], order = [%s]}>"
    assert conversion.source == blocked % ("1, 4", "2, 16", "4, 1", "1, 0")
    assert conversion.result == blocked % ("4, 1", "16, 2", "1, 4", "0, 1")
    assert conversion.scratch_bytes == kernel.metadata.shared


def test_out_of_the_cache(cache: Path) -> None:
    first, again = made(), made()
    assert again.from_cache and not first.from_cache
    assert again.remarks == first.remarks and len(first.remarks) > 2


def test_an_entry_whose_source_has_moved_since(cache: Path, tmp_path: Path) -> None:
    """Its text is the same, so it is out of the cache, and its remarks tell the lines of now."""
    text = (
        "import weft\nimport weft.language as tl\n\n@weft.jit\ndef inner(x, i):\n    return tl.load(x + i)\n\n\n"
        "@weft.jit\ndef outer(x, out, B: tl.constexpr):\n    i = tl.arange(0, B)\n    tl.store(out + i, inner(x, i))\n"
    )

    def spans(source: str, target: str) -> tuple[bool, list[Any]]:
        path = tmp_path / "moving.py"
        path.write_text(source)
        linecache.checkcache()
        space: dict[str, Any] = {"__name__": "moving"}
        exec(compile(source, str(path), "exec"), space)
        kernel = compiled(space["outer"], target, "*fp32 *fp32", {"B": 1024}, "x out")
        return kernel.from_cache, [(r.span.line, r.span.col) for r in kernel.remarks.of(AccessWidth)]

    assert spans(text, "cuda:80") == (False, [(6, 11), (12, 4)])
    moved = text.replace("@weft.jit\ndef inner", "# one\n# two\n\n@weft.jit\ndef inner")
    found = spans(moved, "cuda:80")
    assert found[1] == [(9, 11), (15, 4)]
    moved = text.replace("\n\n\n@weft.jit\ndef outer", "\n\n\n\n\n@weft.jit\ndef outer")
    assert spans(moved, "cuda:80")[1] == [(6, 11), (14, 4)]


def test_a_span_moves_with_the_definition_before_it() -> None:
    at = lambda file, line: AccessWidth(
        Span(file, line, 4), "load", "8xf32", 4, 16, "alignment", "", "i", Span(file, 3, 0)
    )
    remarks = Remarks([at("a.py", 12), at("b.py", 5)])
    moved = remarks.moved([("a.py", 2), ("a.py", 10), ("b.py", 4)], [("a.py", 3), ("c.py", 20), ("b.py", 4)])
    first, second = moved.of(AccessWidth)
    assert first.span == Span("c.py", 22, 4) and first.value_span == Span("a.py", 4, 0)
    assert second.span == Span("b.py", 5, 4)


def test_of_a_worker(cache: Path) -> None:
    knobs.compilation.always_compile = True
    here = made().remarks
    with knobs.compilation.scope():
        knobs.compilation.isolate = True
        isolated = made().remarks
    (many,) = weft.compile_many([lambda: made()], executor=ThreadPoolExecutor(1))
    knobs.compilation.always_compile = False
    assert here == isolated == many.remarks


def test_of_a_launch_and_of_the_simulator() -> None:
    x, out = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    with weft.target("sim:cuda:80"):
        launch = transposed[(1,)](x, out, 64, SIZE=64)
        warm = transposed.warmup(x, out, 64, SIZE=64, grid=(1,))
    on_gpu = transposed.warmup(x, out, 64, SIZE=64, grid=(1,), target="cuda:80")
    assert launch.remarks == warm.remarks == on_gpu.remarks
    assert transposed[(1,)](x, out, 64, SIZE=64).remarks == transposed.warmup(x, out, 64, SIZE=64, grid=(1,)).remarks


def test_as_plain_data() -> None:
    remarks = made().remarks
    assert json.loads(remarks.to_json()) == remarks.as_dicts()
    assert Remarks.from_json(remarks.to_json()) == Remarks.from_json(remarks.stored()) == remarks
    assert pickle.loads(pickle.dumps(made())).remarks == remarks
    (load,) = (r.as_dict() for r in remarks.of("access width") if r.as_dict()["access"] == "load")
    assert load["kind"] == "access width" and load["bytes"] == 16 and load["span"]["column"] == 34
    of_kernel = remarks.of("layouts compared")
    assert [*remarks.on(load["span"]["line"])] == [r for r in remarks if r not in of_kernel]
    with pytest.raises(ValueError, match="^there are no remarks of the kind 'width'; kinds are access width, .*conver"):
        remarks.of("width")


def test_every_kind_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "remarks.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z ]+)` \| `(\w+)` \|", page, flags=re.MULTILINE))
    assert rows == {name: kind.__name__ for name, kind in KINDS.items()}


def test_of_an_entry_for_the_cpu_whose_source_has_moved_since(cache: Path, tmp_path: Path) -> None:
    """Places are no part of its key."""
    text = "import weft\nimport weft.language as tl\n@weft.jit\ndef k(x):\n    tl.store(x + tl.arange(0, 64), 1.0)\n"
    found = []
    for source in (text, "\n\n" + text):
        path = tmp_path / "moving.py"
        path.write_text(source)
        linecache.checkcache()
        space: dict[str, Any] = {"__name__": "moving"}
        exec(compile(source, str(path), "exec"), space)
        kernel = compiled(space["k"], "cpu", "*fp32", {})
        found.append((kernel.from_cache, [r.span.line for r in kernel.remarks]))
    assert found == [(False, [5, 5]), (True, [7, 7])]


def test_of_tile_ir_given_as_text() -> None:
    """Its places are those of the text, not of the kernel that it was traced from."""
    kernel = weft.compile(IRSource(made().asm["ttir"], path="given.ttir"), "cuda:80")
    widths = kernel.remarks.of(AccessWidth)
    assert len(widths) == 2 and {w.span.file for w in widths if w.span} <= {"given.ttir"}


def rows(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_of_tuned_launches_and_of_heuristics() -> None:
    configurations = [weft.Config({"BLOCK": size}) for size in (64, 128)]
    bench = lambda call, quantiles: [call(), (1.0, 1.0, 1.0)][1]
    tuned = weft.autotune(configurations, key=["n"], do_bench=bench)(weft.jit(rows))
    ruled = weft.heuristics({"BLOCK": lambda arguments: 64})(weft.jit(rows))
    x, out = np.zeros(256, np.float32), np.zeros(256, np.float32)
    for kernel, count in ((tuned, 2), (ruled, 1)):
        for target in ("cpu", "sim:cuda:80"):
            with weft.target(target):
                launch = kernel[lambda meta: (256 // meta["BLOCK"],)](x, out, 256)
                warm = kernel.warmup(x, out, 256, grid=(4,))
            made = warm if isinstance(warm, list) else [warm]
            assert len(made) == count and launch.remarks in [each.remarks for each in made]
            assert all(each.remarks for each in made)
        many = weft.compile_many([lambda kernel=kernel: kernel.warmup(x, out, 256, grid=(4,), target="cuda:90")])
        assert all(each.remarks for item in many for each in (item if isinstance(item, list) else [item]))

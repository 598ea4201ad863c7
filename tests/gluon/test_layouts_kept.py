"""What a Gluon author's layout says is what a thread accesses, on a GPU and simulated, unless the author lets it go.

Widths of accesses are compared with those of Triton 3.6 (`copies.py` says how they were written down).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.base import LaunchTypeError
from weft.gluon.language.nvidia.ampere import async_copy
from weft.runtime import knobs

from .copies import COPIES, STORED, accesses_in
from .sources import Source, arguments_of

TRITON = json.loads(STORED.read_text(encoding="utf-8"))
ONE = gl.BlockedLayout([1], [32], [4], [0])
N, BLOCK = 4096, 2048
NARROW = {"ld 4": 16, "st 4": 16}
WIDE = {"ld 16": 4, "st 16": 4}


@gluon.jit
def copy(x, out, n, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i = gl.program_id(0) * B + gl.arange(0, B, layout=L)
    gl.store(out + i, gl.load(x + i, mask=i < n), mask=i < n)


@gluon.jit
def said_later(x, out, n, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i = gl.set_auto_layout(gl.program_id(0) * B + gl.arange(0, B), L)
    gl.store(out + i, gl.load(x + i, mask=i < n), mask=i < n)


@gluon.jit
def two_copies(x, out, n, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i = gl.program_id(0) * B + gl.arange(0, B, gl.CoalescedLayout())
    gl.store(out + i, gl.load(x + i, mask=i < n), mask=i < n)
    j = gl.program_id(0) * B + gl.arange(0, B, layout=L)
    gl.store(out + j, gl.load(x + j, mask=j < n), mask=j < n)


@weft.jit
def in_the_triton_language(x, out, n, B: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def made(kernel: Any, **given: Any) -> dict[str, int]:
    """The accesses of a copy; the simulator runs the same lane program."""
    x = np.zeros(16, np.float32)
    given = {"B": BLOCK, **given, "grid": (1,)}
    compiled = kernel.warmup(x, x, N, target="cuda:90", **given)
    assert kernel.warmup(x, x, N, target="sim:cuda:90", **given).asm["lane"] == compiled.asm["lane"]
    return accesses_in(compiled.asm["ptx"])


def compiled(source: Source, target: str) -> Any:
    signature, attributes = arguments_of(source)
    return weft.compile(weft.ASTSource(source.kernel, signature, source.constexprs, attributes), target, source.options)


@pytest.mark.parametrize("kernel", ["line", "tile", "turned"])
def test_accesses_are_those_of_triton(kernel: str) -> None:
    names = [name for name in COPIES if name.startswith(kernel)]
    assert len(names) >= 19 and set(TRITON) == set(COPIES)
    with knobs.cache.scope():
        knobs.cache.disabled = True
        for name in names:
            assert (name, accesses_in(compiled(COPIES[name], "cuda:90").asm["ptx"])) == (name, TRITON[name])


@pytest.mark.parametrize(("each", "bytes"), [(1, 4), (2, 8), (4, 16)])
def test_throughput_against_elements_in_a_row(each: int, bytes: int) -> None:
    """The experiment of the tutorial on layouts."""
    layout = gl.BlockedLayout([each], [32], [4], [0])
    assert made(copy, L=layout) == {f"ld {bytes}": 16 // each, f"st {bytes}": 16 // each}


def test_registers_that_are_no_powers_of_two_apart() -> None:
    registers = [[1], [8], [3], [16]]  # the third reaches odd elements: a pair that begins there is at an odd address
    lanes, warps = [[4], [32], [64], [128], [256]], [[512], [1024]]
    layout = gl.DistributedLinearLayout(registers, lanes, warps, [], [2048])
    x = np.arange(2048, dtype=np.int8)
    out = np.zeros_like(x)
    with weft.target("sim:cuda:90"):
        copy[(1,)](x, out, 2048, B=2048, L=layout, num_warps=4)
    np.testing.assert_array_equal(out, x)


def test_a_layout_that_is_set_is_its_authors() -> None:
    assert made(said_later, L=ONE) == NARROW


@pytest.mark.parametrize("layout", [gl.CoalescedLayout(), gl.AutoLayout()])
def test_the_compiler_chooses_what_nobody_says(layout: Any) -> None:
    assert made(copy, L=layout) == WIDE


def test_it_chooses_for_nothing_else_in_the_kernel() -> None:
    assert made(two_copies, L=ONE) == {**NARROW, **WIDE}
    coalesced = gl.BlockedLayout([4], [32], [4], [0])  # which is what the other tile has, before it gets a better one
    assert made(two_copies, L=coalesced) == {"ld 16": 8, "st 16": 8}


def test_an_author_may_let_go(tmp_path: Path) -> None:
    """The option is part of the key, in memory and in the cache on disk."""
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        for _ in range(2):
            assert made(copy, L=ONE) == NARROW
            assert made(copy, L=ONE, relayout=True) == WIDE
            copy.reset()


@pytest.mark.parametrize("relayout", [False, True])
def test_launches_and_configurations_have_the_option(relayout: bool) -> None:
    x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    with weft.target("sim:cuda:90"):
        made = copy[(2,)](x, out, N, B=BLOCK, L=ONE, relayout=relayout)
    assert np.array_equal(x, out)
    wide = "vector=4" if relayout else "vector=1"
    assert made.asm["lane"].count(wide) == 2
    tuned = weft.autotune(configs=[weft.Config({"B": BLOCK, "relayout": relayout})], key=["n"])(copy)
    with weft.target("sim:cuda:90"):
        made = tuned[(2,)](x, out, N, L=ONE)
    assert made.asm["lane"].count(wide) == 2


@pytest.mark.parametrize(
    "show", [lambda text, **options: weft.compile(text, "cuda:90", options).asm["lane"],
             lambda text, **options: weft.compile(text, "sim:cuda:90", options).asm["lane"]], ids=["cuda", "sim"]
)  # fmt: skip
def test_layout_ir_that_is_given_is_kept(show: Callable[..., str], tmp_path: Path) -> None:
    x = np.zeros(16, np.float32)
    text = copy.warmup(x, x, N, B=BLOCK, L=ONE, grid=(1,), target="cuda:90").asm["ttgir"]
    file = tmp_path / "copy.ttgir"
    file.write_text(text, encoding="utf-8")
    assert show(str(file)).count("vector=1") == 2
    assert show(str(file), relayout=True).count("vector=4") == 2


def test_it_is_for_gluon_alone() -> None:
    """The layouts of a kernel in the Triton language are the compiler's in any case."""
    x = np.zeros(16, np.float32)
    lanes = [
        in_the_triton_language.warmup(x, x, N, B=BLOCK, grid=(1,), target="cuda:90", relayout=relayout).asm["lane"]
        for relayout in (False, True)
    ]
    assert lanes[0] == lanes[1]
    out = np.zeros(N, np.float32)
    in_the_triton_language[(2,)](np.ones(N, np.float32), out, N, B=BLOCK, relayout=True)  # on a CPU too
    assert out.all()


def test_it_is_on_or_off() -> None:
    x = np.zeros(16, np.float32)
    for target in ("cuda:90", "sim:cuda:90"):
        with pytest.raises(LaunchTypeError, match=r"^relayout must be True or False, got 'yes'$"):
            copy.warmup(x, x, N, B=BLOCK, L=ONE, grid=(1,), target=target, relayout="yes")


def test_a_remark_says_what_letting_go_would_bring() -> None:
    x = np.zeros(16, np.float32)
    given: dict[str, Any] = {"B": BLOCK, "L": ONE, "grid": (1,), "target": "cuda:90"}
    kinds = [{remark.kind for remark in copy.warmup(x, x, N, **given, relayout=r).remarks} for r in (False, True)]
    assert "layout kept" in kinds[0] and "layout changed" not in kinds[0]
    assert "layout changed" in kinds[1] and "layout kept" not in kinds[1]


@gluon.jit
def first_half(x, out, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i = gl.arange(0, B, layout=L)
    gl.store(out + i, gl.load(x + i))


@gluon.jit
def second_half(x, out, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i = gl.arange(0, B, layout=L)
    gl.store(out + B + i, gl.load(x + B + i))


@gluon.jit
def by_two(x, out, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    gl.warp_specialize([(first_half, (x, out, B, L)), (second_half, (x, out, B, L))], [1])


@pytest.mark.parametrize("layout", [gl.CoalescedLayout(), gl.AutoLayout()])
def test_it_chooses_for_the_warps_of_a_partition(layout: Any) -> None:
    x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    by_two[(1,)](x, out, N // 2, layout, target="sim:cuda:90")
    assert np.array_equal(x, out)


@gluon.jit
def softmax(x, out, n, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i = gl.arange(0, B, layout=L)
    value = gl.load(x + gl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    e = gl.exp(value - gl.max(value, 0))
    gl.store(out + gl.program_id(0) * n + i, e / gl.sum(e, 0), mask=i < n)


@gluon.jit
def sums(x, out, M: gl.constexpr, N: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i, j = gl.arange(0, M, layout=L), gl.arange(0, N, layout=L)
    gl.store(out + i, gl.sum(gl.load(x + i[:, None] * N + j[None, :]), 1))


@gluon.jit
def meets(x, out, B: gl.constexpr, L: gl.constexpr):  # type: ignore[no-untyped-def]
    """A tile that the compiler lays out, where the author's is wanted."""
    i, j = gl.arange(0, B), gl.arange(0, B, layout=L)
    gl.store(out + j, gl.load(x + j) + gl.set_auto_layout(2 * gl.load(x + i), L))


@pytest.mark.parametrize("layout", [gl.CoalescedLayout(), gl.AutoLayout()])
def test_it_chooses_for_what_is_reduced(layout: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 100)).astype(np.float32)
    out, e = np.zeros_like(x), np.exp(x - x.max(1, keepdims=True))
    softmax[(4,)](x, out, 100, 128, layout, target="sim:cuda:90")
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), 1e-5)
    if isinstance(layout, gl.AutoLayout):
        x, out = np.arange(2048, dtype=np.float32).reshape(32, 64), np.zeros(32, np.float32)
        sums[(1,)](x, out, 32, 64, layout, target="sim:cuda:90")
        np.testing.assert_array_equal(out, x.sum(1))
        out = np.zeros(512, np.float32)
        meets[(1,)](x, out, 512, ONE, target="sim:cuda:90")
        np.testing.assert_array_equal(out, 3 * x.ravel()[:512])


@gluon.jit
def copied_ahead(x, out, L: gl.constexpr):  # type: ignore[no-untyped-def]
    i = gl.arange(0, 64, gl.SliceLayout(1, L))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, L))[None, :]
    memory = gl.allocate_shared_memory(gl.float16, [64, 64], gl.SwizzledSharedLayout(8, 1, 8, [1, 0]))
    async_copy.async_copy_global_to_shared(memory, x + i)
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(out + i, memory.load(L))


def test_copies_past_registers_are_as_wide_as_the_layout_allows() -> None:
    """Two halves of a row are a thread's second and third element: `cp.async` takes both, a store one."""
    x = np.arange(4096, dtype=np.float16)
    out = np.zeros_like(x)
    layout = gl.BlockedLayout([2, 2], [8, 4], [4, 1], [0, 1])
    made = copied_ahead[(1,)](x, out, layout, target="sim:cuda:90")
    np.testing.assert_array_equal(out, x)
    assert "bytes=4" in made.asm["lane"] and accesses_in(made.asm["ptx"]) == {"st 2": 32}

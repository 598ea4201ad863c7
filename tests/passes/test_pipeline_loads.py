"""Loops of products whose loads are copied ahead: what becomes of them, and that they compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp

import weft
import weft.language as tl
from weft.ir import find, parse_module, print_module, tt, verify
from weft.lower import lower
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline
from weft.sim import run

pytestmark = pytest.mark.usefixtures("copies_by_threads")
M, N, K = 64, 32, 32


def pointers(name: str, rows: int, columns: int, stride: str, elem: str, transposed: bool = False) -> str:
    """%name: the addresses of a tile; `transposed`: consecutive along rows."""
    a, b = ("1", "0") if not transposed else ("0", "1")
    first, second = (rows, columns) if not transposed else (columns, rows)
    tall, wide = (f"{rows}x1", f"1x{columns}") if not transposed else (f"1x{columns}", f"{rows}x1")
    whole = f"{rows}x{columns}"
    return f"""
    %{name}_i = tt.make_range {{end = {first} : i32, start = 0 : i32}} : tensor<{first}xi32>
    %{name}_j = tt.make_range {{end = {second} : i32, start = 0 : i32}} : tensor<{second}xi32>
    %{name}_e = tt.expand_dims %{name}_i {{axis = {a} : i32}} : tensor<{first}xi32> -> tensor<{tall}xi32>
    %{name}_f = tt.expand_dims %{name}_j {{axis = {b} : i32}} : tensor<{second}xi32> -> tensor<{wide}xi32>
    %{name}_s = tt.splat {stride} : i32 -> tensor<{tall}xi32>
    %{name}_m = arith.muli %{name}_e, %{name}_s : tensor<{tall}xi32>
    %{name}_b = tt.broadcast %{name}_m : tensor<{tall}xi32> -> tensor<{whole}xi32>
    %{name}_c = tt.broadcast %{name}_f : tensor<{wide}xi32> -> tensor<{whole}xi32>
    %{name}_o = arith.addi %{name}_b, %{name}_c : tensor<{whole}xi32>
    %{name}_q = tt.splat %{name}_ptr : !tt.ptr<{elem}> -> tensor<{whole}x!tt.ptr<{elem}>>
    %{name} = tt.addptr %{name}_q, %{name}_o : tensor<{whole}x!tt.ptr<{elem}>>, tensor<{whole}xi32>"""


def text_of(elem: str = "f16", out: str = "f32", other: str = "0.0", inside: str = "", attributes: str = "") -> str:
    """c = a @ b with a mask on the columns of a and steps of `K`; `inside` stands in the loop."""
    a, b, c = f"{M}x{K}", f"{K}x{N}", f"{M}x{N}"
    arguments = ", ".join(
        f"%{n}_ptr: !tt.ptr<{e}> {{tt.divisibility = 16 : i32}}" for n, e in (("a", elem), ("b", elem), ("c", out))
    )
    zero = "0" if out[0] == "i" else "0.0"
    return f"""module {{
  tt.func public @product({arguments}, %k: i32 {{tt.divisibility = 16 : i32}}) {{
    %n = arith.constant {N} : i32{pointers("a", M, K, "%k", elem)}{pointers("b", K, N, "%n", elem)}
    {pointers("c", M, N, "%n", out)}
    %zero = arith.constant dense<{zero}> : tensor<{c}x{out}>
    %other = arith.constant dense<{other}> : tensor<{a}x{elem}>
    %first = arith.constant 0 : i32
    %step = arith.constant {K} : i32
    %move_a = arith.constant dense<{K}> : tensor<{a}xi32>
    %move_b = arith.constant dense<{K * N}> : tensor<{b}xi32>
    %d:3 = scf.for %i = %first to %k step %step iter_args(%pa = %a, %pb = %b, %acc = %zero)
        -> (tensor<{a}x!tt.ptr<{elem}>>, tensor<{b}x!tt.ptr<{elem}>>, tensor<{c}x{out}>) : i32 {{
      %left = arith.subi %k, %i : i32
      %most = tt.splat %left : i32 -> tensor<{a}xi32>
      %mask = arith.cmpi slt, %a_c, %most : tensor<{a}xi32>
      %rows = tt.broadcast %b_e : tensor<{K}x1xi32> -> tensor<{b}xi32>
      %most_b = tt.splat %left : i32 -> tensor<{b}xi32>
      %mask_b = arith.cmpi slt, %rows, %most_b : tensor<{b}xi32>
      %x = tt.load %pa, %mask, %other : tensor<{a}x!tt.ptr<{elem}>>
      %y = tt.load %pb, %mask_b : tensor<{b}x!tt.ptr<{elem}>>
      %t = tt.dot %x, %y, %acc : tensor<{a}x{elem}> * tensor<{b}x{elem}> -> tensor<{c}x{out}>
      {inside}
      %na = tt.addptr %pa, %move_a : tensor<{a}x!tt.ptr<{elem}>>, tensor<{a}xi32>
      %nb = tt.addptr %pb, %move_b : tensor<{b}x!tt.ptr<{elem}>>, tensor<{b}xi32>
      scf.yield %na, %nb, %t : tensor<{a}x!tt.ptr<{elem}>>, tensor<{b}x!tt.ptr<{elem}>>, tensor<{c}x{out}>
    }} {attributes}
    tt.store %c, %d#2 : tensor<{c}x!tt.ptr<{out}>>
    tt.return
  }}
}}"""


def laid_out(target: str, stages: int = 3, warps: int = 4, text: str = "") -> ModuleOp:
    tiles = tile_pipeline(parse_module(text or text_of(), "product.ttir"))
    module = gpu_pipeline(tiles, machine_of(target), warps, stages)
    verify(module, "layout")
    assert print_module(parse_module(print_module(module))) == print_module(module)
    return module


def operations(module: ModuleOp) -> list[str]:
    """The loop's operations but for arithmetic."""
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    skipped = ("arith.", "tt.splat", "tt.addptr", "tt.broadcast", "ttg.memdesc_index", "scf.")
    return [op.name for op in loop.body.block.ops if not op.name.startswith(skipped)]


COPIES = ["ttg.async_copy_global_to_local", "ttg.async_copy_global_to_local", "ttg.async_commit_group"]


def test_copies_come_after_the_wait() -> None:
    found = operations(laid_out("cuda:80"))
    assert found == ["ttg.async_wait", *COPIES, "ttg.local_load", "ttg.local_load", "tt.dot"]


def test_of_a_row_of_masks_the_row_is_false_past_the_end() -> None:
    """Whether the iteration exists is then asked once for all rows of the tile."""
    narrow, wide, types = f"tensor<1x{K}xi32>", f"tensor<{M}x{K}xi32>", (f"tensor<1x{K}xi1>", f"tensor<{M}x{K}xi1>")
    text = text_of().replace(f"%most = tt.splat %left : i32 -> {wide}", f"%most = tt.splat %left : i32 -> {narrow}")
    text = text.replace(
        f"%mask = arith.cmpi slt, %a_c, %most : {wide}",
        f"%row = arith.cmpi slt, %a_f, %most : {narrow}\n%mask = tt.broadcast %row : {types[0]} -> {types[1]}",
    )
    loop = max(find(laid_out("cuda:90", text=text), scf.ForOp), key=lambda op: len(op.regions[0].block.args))
    mask = next(op.operands[2].owner for op in loop.regions[0].block.ops if op.name == COPIES[0])
    assert isinstance(mask, tt.BroadcastOp)
    assert isinstance(mask.operands[0].owner, arith.AndIOp)


def test_copies_come_after_the_product_before() -> None:
    found = operations(laid_out("cuda:90"))
    products = ["ttng.warp_group_dot", "ttng.warp_group_dot_wait"]
    assert found == [*products, "ttg.async_wait", "ttng.fence_async_shared", *COPIES]


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("elem", ["f16", "i8", "f32"])
@pytest.mark.thinned(3)
def test_computes_the_same(elem: str, warps: int, target: str, stages: int) -> None:
    types: dict[str, tuple[Any, str, Any]] = {
        "f16": (np.float16, "f32", np.float32),
        "i8": (np.int8, "i32", np.int32),
        "f32": (np.float32, "f32", np.float32),
    }
    dtype, out, total = types[elem]
    module = laid_out(target, stages, warps, text_of(elem, out, "0" if elem == "i8" else "0.0"))
    assert sum(op.name == COPIES[0] for op in module.walk()) == 2 * stages
    program = lower(module)
    rng = np.random.default_rng(stages)
    for depth in (0, 16, 3 * K, 5 * K + 16):
        a = rng.integers(-4, 5, (M, max(depth, 1))).astype(dtype)
        b = rng.integers(-4, 5, (max(depth, 1), N)).astype(dtype)
        c = np.full((M, N), 7, total)
        run(program, 1, {"a_ptr": a, "b_ptr": b, "c_ptr": c, "k": depth})
        wanted = a.astype(total) @ b.astype(total) if depth else np.zeros((M, N), total)
        assert np.array_equal(c, wanted)


def test_bytes_of_a_column_are_put_together_in_registers() -> None:
    """No instruction loads them together from rows in shared memory: the tile is loaded as it was copied."""
    found = operations(laid_out("cuda:80", text=text_of("i8", "i32", "0")))
    assert found == ["ttg.async_wait", *COPIES, "ttg.local_load", "ttg.local_load", "ttg.convert_layout", "tt.dot"]


@pytest.mark.parametrize("cast", ["arith.fptosi", "arith.fptoui"])
def test_a_zero_of_another_type_is_zero(cast: str) -> None:
    """`tl.load(..., other=0.0)` of integers."""
    type = f"tensor<{M}x{K}x"
    text = text_of("i8", "i32", "0").replace(
        f"%other = arith.constant dense<0> : {type}i8>",
        f"%float = arith.constant dense<0.0> : {type}f32>\n%other = {cast} %float : {type}f32> to {type}i8>",
    )
    assert cast in text
    assert operations(laid_out("cuda:80", text=text)).count(COPIES[0]) == 2


def test_the_loop_says_how_many_stages() -> None:
    module = laid_out("cuda:80", text=text_of(attributes="{tt.num_stages = 2 : i32}"))
    assert sum(op.name == COPIES[0] for op in module.walk()) == 4


STORE = f"tt.store %c, %t : tensor<{M}x{N}x!tt.ptr<f32>>"
STORE_LOADED = f"tt.store %pb, %y : tensor<{K}x{N}x!tt.ptr<f16>>"


@pytest.mark.parametrize(
    ("more", "stages", "copies"),
    [
        ({}, 1, 0),
        ({"other": "1.0"}, 3, 3),  # the left operand stays, the right one does not
        ({"other": "-0.0"}, 3, 3),
        ({"inside": STORE}, 3, 6),  # through an argument of which it loads nothing
        ({"inside": STORE_LOADED}, 3, 3),  # the right operand stays, the left one does not
        ({"inside": "gpu.barrier"}, 3, 0),
        ({"attributes": "{tt.num_stages = 1 : i32}"}, 3, 0),
    ],
)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.thinned(2)
def test_what_stays(target: str, more: dict[str, str], stages: int, copies: int) -> None:
    module = laid_out(target, stages, text=text_of(**more))
    assert sum(op.name == COPIES[0] for op in module.walk()) == copies
    program = lower(module)
    a, b = np.arange(M * 2 * K).reshape(M, -1) % 5, np.arange(N * 2 * K).reshape(-1, N) % 7
    c = np.zeros((M, N), np.float32)
    run(program, 1, {"a_ptr": a.astype(np.float16), "b_ptr": b.astype(np.float16), "c_ptr": c, "k": 2 * K})
    assert np.array_equal(c, a @ b)


def test_a_target_without_copies() -> None:
    assert COPIES[0] not in operations(laid_out("cuda:75"))


def test_fewer_stages_where_memory_is_small() -> None:
    """A stage is 6 KiB, a block of sm_86 has 99 KiB; 8 of them are left for other things."""
    module = laid_out("cuda:86", 30)
    assert sum(op.name == COPIES[0] for op in module.walk()) == 2 * 15
    lower(module)


@weft.jit
def widened(X, W, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for step in range(K // BK):
        x = tl.load(X + m[:, None] * K + (step * BK + k)[None, :])
        w = tl.load(W + n[None, :] * K + (step * BK + k)[:, None])
        total = tl.dot(x, w.to(tl.float16), total)
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize(("n", "depth", "copied"), [(128, 64, 2), (256, 128, 2), (128, 256, 1)])
def test_some_of_the_loads_where_memory_is_too_small_for_all(n: int, depth: int, copied: int) -> None:
    """Two stages of 96 KiB, and 64 KiB for what the loop stores, are more than a block has; of one load they fit."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(-2, 3, (128, 512)).astype(np.float16), rng.integers(-9, 9, (n, 512)).astype(np.int8)
    out = np.zeros((128, n), np.float32)
    options: dict[str, Any] = {"M": 128, "N": n, "BK": depth, "num_warps": 8}
    widened[(1,)](x, w, out, 512, **options, target="sim:cuda:90")
    np.testing.assert_array_equal(out, x.astype(np.float32) @ w.T.astype(np.float32))
    kernel = widened.warmup(x, w, out, 512, **options, grid=(1,), target="cuda:90")
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert loop.count(COPIES[0]) == copied and loop.count("tt.load") == 2 - copied


@weft.jit
def best_match(Q, D, OUT, rows, W: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """The largest product of each row of Q with any row of D."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, W)
    q = tl.load(Q + m[:, None] * W + k[None, :])
    best = tl.full((M,), float("-inf"), tl.float32)
    for start in range(0, rows, N):
        there = start + n < rows
        d = tl.load(D + (start + n)[:, None] * W + k[None, :], mask=there[:, None], other=0.0).to(tl.float32)
        found = tl.where(there[None, :], tl.dot(q, tl.trans(d.to(tl.float16))), float("-inf"))
        best = tl.maximum(best, tl.max(found, 1))
    tl.store(OUT + m, best)


@pytest.mark.parametrize(("n", "stages", "buffers"), [(64, 3, 3), (128, 3, 2), (256, 3, 2), (256, 6, 2)])
@pytest.mark.parametrize("rows", [100, 700])
@pytest.mark.thinned(2)
def test_copies_come_where_the_turn_has_read(n: int, stages: int, buffers: int, rows: int) -> None:
    """Of 16 KiB there are as many as stages; one of 32 less makes room for another block; of 64 there are only 2."""
    rng = np.random.default_rng(0)
    q, d = (rng.integers(-2, 3, (r, 128)).astype(np.float16) for r in (16, rows))
    out = np.zeros(16, np.float32)
    options: dict[str, Any] = {"W": 128, "M": 16, "N": n, "num_warps": 4, "num_stages": stages}
    best_match[(1,)](q, d, out, rows, **options, target="sim:cuda:90")
    np.testing.assert_array_equal(out, (q.astype(np.float32) @ d.T.astype(np.float32)).max(1))
    text = best_match.warmup(q, d, out, rows, **options, grid=(1,), target="cuda:90").asm["ttgir"]
    assert f"memdesc<{buffers}x{n}x128xf16" in text
    before, _, after = text.partition("scf.for")
    ahead = min(stages - 1, buffers)
    assert before.count(COPIES[0]) == ahead
    loop = after.partition("scf.yield")[0]
    assert f"ttg.async_wait {{num = {ahead - 1} : i32}}" in loop and "arith.extf" not in loop
    first = (COPIES[0], "ttg.local_load") if buffers == stages else ("ttg.local_load", COPIES[0])
    assert loop.index(first[0]) < loop.index(first[1])


@weft.jit
def few_rows(X, W, OUT, N, K, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of few rows with weights that are computed of words."""
    m, n, k = tl.arange(0, M), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((M, BN), tl.float32)
    for step in range(K // BK):
        x = tl.load(X + m[:, None] * K + (step * BK + k)[None, :])
        words = tl.load(W + (step * BK + k)[:, None] * N + n[None, :])
        total = tl.dot(x, (words >> 4 & 15).to(tl.float16), total)
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize(("depth", "buffers"), [(128, 2), (64, 3)])
def test_a_buffer_less_where_few_warps_run_and_a_block_has_room(depth: int, buffers: int) -> None:
    """Three times 20 KiB are enough for three blocks of four warps, twice 20 for five; three times 10 for seven."""
    rng = np.random.default_rng(0)
    x, words = rng.integers(-2, 3, (16, 384)).astype(np.float16), rng.integers(0, 1 << 31, (384, 64)).astype(np.int32)
    out = np.zeros((16, 64), np.float32)
    options: dict[str, Any] = {"M": 16, "BN": 32, "BK": depth, "num_warps": 4, "num_stages": 3}
    few_rows[(2,)](x, words, out, 64, 384, **options, target="sim:cuda:90")
    np.testing.assert_array_equal(out, x.astype(np.float32) @ (words >> 4 & 15).astype(np.float32))
    text = few_rows.warmup(x, words, out, 64, 384, **options, grid=(2,), target="cuda:90").asm["ttgir"]
    assert f"memdesc<{buffers}x16x{depth}xf16" in text


@weft.jit
def nibbles_joined(X, W, OUT, K, N, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Two weights in a byte, one after the other along N; offsets that the loop carries, and masks of them."""
    m, n, k = tl.arange(0, M), tl.arange(0, BN), tl.arange(0, BK)
    half = tl.arange(0, BN // 2)
    total = tl.zeros((M, BN), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(X + m[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        w = tl.load(W + k[:, None] * (N // 2) + half[None, :], mask=k[:, None] < K, other=0)
        w = tl.interleave(w & 15, w >> 4 & 15)
        total = tl.dot(x, w.to(tl.float16), total)
        k += BK
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_what_is_joined_is_copied_ahead_and_masks_are_not_moved(target: str) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-2, 3, (16, 160)).astype(np.float16), rng.integers(0, 256, (160, 32)).astype(np.uint8)
    out = np.zeros((16, 64), np.float32)
    options: dict[str, Any] = {"M": 16, "BN": 64, "BK": 64}
    nibbles_joined[(1,)](x, w, out, 160, 64, **options, target="sim:" + target)
    weights = np.stack([w & 15, w >> 4], -1).reshape(160, 64)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ weights.astype(np.float32))
    kernel = nibbles_joined.warmup(x, w, out, 160, 64, **options, grid=(1,), target=target)
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert loop.count(COPIES[0]) == 2 and "tt.load" not in loop
    assert not any("ttg.convert_layout" in line and "xi1" in line for line in loop.splitlines())

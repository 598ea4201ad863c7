"""Kernels and launches of many styles, which both type checkers accept."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import weft
import weft.language as tl
from weft import JITFunction

LOG2E: tl.constexpr = tl.constexpr(1.44269504)


@weft.jit
def untyped(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def with_warps(x: tl.pointer, BLOCK: tl.constexpr, num_warps: tl.constexpr) -> None:
    tl.store(x + tl.arange(0, BLOCK), num_warps)


@weft.jit
def only(x: tl.pointer, *, BLOCK: tl.constexpr) -> None:
    pass


@weft.jit
def opt(x: tl.pointer, b: Optional[tl.pointer], fn: tl.constexpr, scale: tl.Scalar = 1.0) -> None:
    if b is not None:
        v = tl.load(b)
        tl.store(x, fn(v) * scale)


@weft.jit
def _combine(a: tl.tensor, b: tl.tensor) -> tl.tensor:
    return a + b


@weft.jit
def helper(pid: tl.tensor, BLOCK: tl.constexpr) -> tl.tensor:
    return pid * BLOCK + tl.arange(0, BLOCK)


@weft.jit
def gelu(x: tl.tensor, SCALE: tl.constexpr) -> tl.tensor:
    y = x * SCALE * 0.5
    return SCALE * y * (1 + tl.math.erf(x / 2)) + LOG2E * x


@weft.jit
def offsets(pid: tl.Scalar, BLOCK: tl.constexpr) -> tl.tensor:
    return pid * BLOCK + tl.arange(0, BLOCK)


@weft.jit
def norm(x: tl.tensor, n: tl.Scalar, eps: tl.Scalar) -> tl.tensor:
    mean = tl.sum(x, axis=0) / n
    d = x - mean
    return d * tl.rsqrt(tl.sum(d * d) / n + eps)


@weft.jit
def largest(x: tl.tensor, y: tl.tensor) -> tl.tensor:
    m = tl.max(x, axis=0)
    if m > 3:
        return m
    return tl.maximum(tl.min(y, 0), tl.exp(m))


@weft.jit
def count(n: tl.Scalar, BLOCK: tl.constexpr) -> tl.tensor:
    return tl.cdiv(n, BLOCK)


@weft.jit
def pick(p: tl.pointer, q: tl.pointer, i: tl.tensor) -> tl.tensor:
    return p + i


@weft.jit
def both(x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    a, b = tl.split(x)
    return a, tl.exp2(b)


@weft.jit
def note(where: tl.pointer, pid: tl.Scalar) -> None:
    tl.store(where + pid, pid)


@weft.jit
def uses(x_ptr: tl.pointer, out_ptr: tl.pointer, n: tl.int64, BLOCK: tl.constexpr) -> None:
    i = helper(tl.program_id(0), BLOCK)
    note(x_ptr, tl.program_id(0))
    note(out_ptr + i, n)
    v = tl.load(x_ptr + i, mask=i < n)
    s = tl.reduce(v, 0, _combine)
    c = tl.associative_scan(v, axis=0, combine_fn=_combine)
    tl.atomic_add(out_ptr, s)
    tl.store(out_ptr + i, c)
    lo, hi = tl.minimum(v, 0), tl.maximum(v, 0)
    if s > 3:
        tl.store(out_ptr, lo + hi)
    z = v.to(tl.float32, bitcast=True)
    w = v.reshape(BLOCK // 2, 2).trans()
    q = w.sum(0) + z.max(axis=0) + v.exp()
    for k in tl.range(0, n, num_stages=2):
        q += k
    r = tl.full([BLOCK], 0.0, tl.float32)
    r2 = tl.zeros_like(r)
    p = tl.make_block_ptr(base=x_ptr, shape=(n,), strides=(1,), offsets=(0,), block_shape=(BLOCK,), order=(0,))
    u = tl.load(p, boundary_check=(0,), padding_option="zero")
    p = tl.advance(p, (BLOCK,))
    tl.device_assert(n > 0, "n")
    tl.static_print(u.shape, BLOCK, r2.dtype)
    rnd = tl.rand(3, i)
    a, b = tl.philox(3, 4, i, i, i)[:2]
    h = tl.inline_asm_elementwise("mov $0, $1;", "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x_ptr + i, rnd + a + b + h, mask=(i < n) & (i >= 0) | ~(i > 3))
    y = tl.where(i % 2 == 0, -v, +v)
    t = tl.cat(y, y, can_reorder=True)
    t2 = tl.join(y, y).permute(1, 0)
    e = tl.expand_dims(y, 0)
    tl.debug_barrier()
    tl.store(x_ptr + i, tl.broadcast_to(e, (1, BLOCK)) + t + t2)
    d: tl.constexpr = x_ptr.dtype.element_ty
    if d == tl.float16:
        pass
    x_ptr = x_ptr.to(tl.pointer_type(tl.int8))


@weft.jit
def tma(desc: tl.tensor_descriptor, out: tl.pointer, B: tl.constexpr) -> None:
    v = desc.load([0, 0])
    desc.store([0, 0], v)
    d2 = tl.make_tensor_descriptor(out, [4, 4], [4, 1], [B, B])
    d2.store([0, 0], v)


@weft.constexpr_function
def log2(n: int) -> int:
    return n.bit_length() - 1


@weft.jit
def mm(a: tl.tensor, b: tl.tensor, acc: tl.tensor, PREC: tl.constexpr = "tf32") -> tl.tensor:
    c = tl.dot(a, b, acc, input_precision=PREC, out_dtype=tl.float32)
    s = tl.dot_scaled(a, None, "e4m3", b, None, "e4m3", c)
    for _ in tl.static_range(log2(8)):
        s *= 2
    return s


def launch(kernel: JITFunction, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    kernel[grid](*args, **options)


def run(x: np.ndarray[Any, Any], n: int) -> None:
    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        return (weft.cdiv(n, meta["BLOCK"]),)

    untyped[grid](x, x, n, BLOCK=64, num_warps=4)
    untyped[grid](x, x, n=n, BLOCK=64)
    with_warps[1,](x, BLOCK=4, num_warps=4)
    with_warps[1,](x, 4, 4, num_stages=2)
    only[(1,)](x, BLOCK=3)
    only[(1,)](x, BLOCK=3, num_warps=2)
    opt[(np.int64(3),)](x, None, fn=_combine, scale=2)
    opt[(1,)](x, x, _combine, num_warps=4)
    opt[4](x, x, _combine)
    opt[[4, 4]](x, x, _combine)
    launch(untyped, (1,), x, x, n, 64, num_warps=4)
    options: dict[str, Any] = {"num_warps": 4}
    untyped[(1,)](x, x, n, 64, **options)
    args = (x, x, n)
    untyped[(1,)](*args, BLOCK=64, num_warps=4)
    tma[(1,)](weft.TensorDescriptor.from_tensor(x, [4, 4]), x, 4)
    kernels: list[JITFunction] = [untyped, only]
    for k in kernels:
        k[(1,)](x, BLOCK=3)
    bound = untyped.bind(x, x, n, 64, grid=(1,))
    bound()
    made = untyped[(1,)](x, x, n, 64)
    made.report.to_dict()
    print(made["global_load_bytes"] + made.kinds["x"])
    made[(1,)](x)
    print(made.n_regs, made.n_spills, made.metadata.num_warps, made.metadata.target.arch, made.remarks, made.asm["ptx"])
    r = weft.sim.last_run()
    print(r["bank_conflicts"], r.total["x"], r.printed, r.to_json())
    weft.testing.do_bench(lambda: untyped[(1,)](x, x, n, 64))


class Layer:
    def __init__(self, kernel: JITFunction) -> None:
        self.kernel = kernel

    @staticmethod
    @weft.jit
    def inner(x: tl.pointer, B: tl.constexpr) -> None:
        tl.store(x + tl.arange(0, B), 1)

    def __call__(self, x: np.ndarray[Any, Any]) -> None:
        self.kernel[(1,)](x, 3)
        self.inner[(1,)](x, B=4)
        self.inner[(1,)](x, B=4, num_warps=4)


KERNELS = {"copy": untyped, "warps": with_warps}


def tuned_configs() -> list[weft.Config]:
    return [weft.Config({"BLOCK": b}, num_stages=s, num_warps=w) for b in (32, 64) for s in (2, 3) for w in (4, 8)]


def prune(configs: list[weft.Config], named_args: dict[str, Any], **kwargs: Any) -> list[weft.Config]:
    return configs[:1]


@weft.autotune(configs=tuned_configs(), key=["n"], prune_configs_by={"early_config_prune": prune})
@weft.jit
def tuned(x: tl.pointer, out: tl.pointer, n: tl.Scalar, BLOCK: tl.constexpr) -> None:
    tl.atomic_add(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), axis=0))


tuned[lambda meta: (weft.cdiv(8, meta["BLOCK"]),)](np.ones(8), np.ones(1), 8)
print(tuned.best_config, tuned.fn)

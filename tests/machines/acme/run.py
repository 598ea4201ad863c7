"""Compile, launch and simulate kernels for a GPU of a vendor that Weft's own code does not name."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import sys
from typing import Any

import numpy as np

import weft
import weft.language as tl
from weft import sim
from weft.backends.gpu.dialect import Dialect
from weft.base import CompileOptions, DeviceAssertionError
from weft.compiler import devices
from weft.compiler.backends import backend_of, first_backend
from weft.ir.lane import Block, Builder, LaneProgram, Parameter, Value
from weft.runtime import driver

BOTH = ("acme:one", "sim:acme:one")
ABSENT = {"remote", "wait", "assembly"}
"""What of a dialect Acme has nothing for: clusters, products that go on by themselves, assembly of an author's."""
rng = np.random.default_rng(1)


def run(kernel: Any, grid: tuple[int, ...], *arrays: Any, target: str, **options: Any) -> tuple[Any, list[Any]]:
    """(the kernel, arrays as they are afterwards)."""
    given = [np.copy(a) if isinstance(a, np.ndarray) else a for a in arrays]
    with weft.target(target):
        if target.startswith("acme"):
            given = [weft.cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in given]
        made = kernel[grid](*given, **options)
        return made, [a.numpy() if hasattr(a, "numpy") else a for a in given]


def recorded(dialect: Any) -> set[str]:
    """The methods of a dialect that are called from now on."""
    called: set[str] = set()

    def told(name: str, method: Any) -> Any:
        @functools.wraps(method)
        def tell(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            return method(*args, **kwargs)

        return tell

    for name in asked_for():
        setattr(dialect, name, told(name, getattr(dialect, name)))
    return called


def asked_for() -> set[str]:
    """The methods that a dialect has to have."""
    return {name for name, method in vars(Dialect).items() if inspect.isfunction(method) and name[0] != "_"}


def names(kernel: Any) -> set[str]:
    """The operations of its lane program."""
    lines = (line.strip().partition(" = ")[2] or line.strip() for line in kernel.asm["lane"].splitlines())
    return {line.partition(" ")[0] for line in lines}


@weft.jit
def rows(out, x, y, width, stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < width
    a = tl.load(x + row * stride + column, mask=mask, other=1.0)
    b = tl.load(y + row * stride + column, mask=mask, other=1.0)
    tl.store(out + row * stride + column, tl.exp2(a) / b + row % 3, mask=mask)


@weft.jit
def softmax(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + i, e / tl.sum(e, 0), mask=i < n)


@weft.jit
def transposed(out, x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tile = tl.load(x + i[:, None] * COLUMNS + j)
    tl.store(out + j[:, None] * ROWS + i, tl.trans(tile))


@weft.jit
def matmul(out, x, y, K, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    i, j, k = tl.arange(0, SIZE), tl.arange(0, SIZE), tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for at in range(0, K, DEPTH):
        a = tl.load(x + i[:, None] * K + at + k)
        b = tl.load(y + (at + k)[:, None] * SIZE + j, mask=(at + k)[:, None] < K - 3, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(out + i[:, None] * SIZE + j, total)


@weft.jit
def counted(bins, total, most, lock, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(bins + v % 8, 1, mask=i < n)
    tl.atomic_add(total, tl.sum(v.to(tl.float32), 0))
    tl.atomic_max(most + tl.zeros_like(i), v, mask=i < n)
    if tl.atomic_cas(lock, 0, 1) == 0:
        tl.atomic_xchg(lock, 2)


@weft.jit
def scanned(out, flags, x, small, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    b = tl.load(small + i, mask=i != 5, other=7)
    tl.store(out + i, tl.cumsum(v, 0) // 7 + tl.gather(v, BLOCK - 1 - i, 0) + b.to(tl.int64))
    tl.store(flags + i, (b > 0) & (v.to(tl.float32).to(tl.float16).to(tl.int32) % 2 == 0), mask=i < BLOCK - 1)


@weft.jit
def divided(out, x, y, n, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for at in range(0, n, BLOCK):
        v, w = tl.load(x + at + i), tl.load(y + at + i)
        half = (v.to(tl.float32) / 3).to(tl.float16, fp_downcast_rounding="rtz")
        tl.store(out + at + i, v // w + half.to(tl.float32).to(tl.int64))
    tl.atomic_store(flag, 3, sem="release")
    tl.atomic_poll(flag, 3, sem="acquire", timeout_ns=10**9)
    tl.store(flag + 1, tl.atomic_load(flag, sem="acquire"))


@weft.jit
def spoken(x, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.device_print("v", tl.sum(v, 0))
    tl.device_assert(v < 100, "too large")


def check_rows(target: str) -> None:
    x, y = (rng.uniform(1, 4, (5, 112)).astype(np.float32) for _ in range(2))
    _, (out, *_) = run(rows, (5,), np.zeros_like(x), x, y, 96, 112, target=target, BLOCK=128)
    expected = np.where(np.arange(112) < 96, np.exp2(x) / y + np.arange(5)[:, None] % 3, 0)
    assert np.allclose(out, expected, rtol=1e-6), abs(out - expected).max()


def check_softmax(target: str) -> None:
    x = rng.normal(size=100).astype(np.float32)
    made, (out, *_) = run(softmax, (1,), np.zeros_like(x), x, 100, target=target, BLOCK=128, num_warps=2)
    e = np.exp(x - x.max())
    assert np.allclose(out, e / e.sum(), rtol=1e-5)
    assert {"shuffle", "barrier", "shared"} <= names(made)


def check_transposed(target: str) -> None:
    x = rng.integers(-99, 99, (16, 64)).astype(np.int16)
    made, (out, _) = run(transposed, (1,), np.zeros_like(x), x, target=target, ROWS=16, COLUMNS=64, num_warps=2)
    assert (out.reshape(64, 16) == x.T).all() and {"barrier", "shared"} <= names(made)


def check_matmul(target: str) -> None:
    x, y = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((32, 128), (128, 32)))
    out = np.zeros((32, 32), np.float32)
    made, (out, *_) = run(matmul, (1,), out, x, y, 128, target=target, SIZE=32, DEPTH=32, num_warps=2, num_stages=3)
    y[125:] = 0
    assert (out == x.astype(np.float32) @ y.astype(np.float32)).all(), np.argwhere(out != x @ y)[:5]
    assert {"instruction", "copy_async", "wait_async"} <= names(made) and "acme.multiply.f16" in made.asm["lane"]


def check_counted(target: str) -> None:
    x = rng.integers(0, 50, 150).astype(np.int32)
    given = np.zeros(8, np.int32), np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    made, (bins, total, most, lock, *_) = run(counted, (3,), *given, x, 150, target=target, BLOCK=64, num_warps=2)
    assert (bins == np.bincount(x % 8, minlength=8)).all() and total[0] == x.sum()
    assert most[0] == x.max() and lock[0] == 2 and {"atomic", "compare_and_swap"} <= names(made)


def check_scanned(target: str) -> None:
    x, small = rng.integers(0, 1 << 10, 64), rng.integers(-128, 128, 64).astype(np.int8)
    given = np.zeros(64, np.int64), np.full(64, 2, np.int8)
    _, (out, flags, *_) = run(scanned, (1,), *given, x, small, target=target, BLOCK=64, num_warps=2)
    b = np.where(np.arange(64) == 5, 7, small)
    assert (out == np.cumsum(x) // 7 + x[::-1] + b).all()
    expected = ((b > 0) & (x.astype(np.float16).astype(int) % 2 == 0)).astype(np.int8)
    expected[-1] = 2
    assert (flags == expected).all()


def check_divided(target: str) -> None:
    x, y = rng.integers(-5000, 5000, 128), rng.integers(1, 90, 128)
    given = np.zeros_like(x), x, y, 128, np.zeros(2, np.int32)
    _, (out, *_, flag) = run(divided, (1,), *given, target=target, BLOCK=64, num_warps=2)
    rounded = np.trunc((x.astype(np.float32) / 3).astype(np.float64)).astype(np.int64)
    exact = np.trunc(x / y).astype(np.int64)
    assert np.abs(out - exact - rounded).max() <= 1 and (flag == 3).all()


def check_operations() -> None:
    """Operations of lane programs that few kernels need, as the processor and the simulator do them."""
    machine, block = acme.machine, Block((Value("i64", 1),))
    b = Builder(block)
    lane, warp = b.linear((0,), lane=(1, 2, 4, 8)), b.linear((0,), warp=(1,), uniform=True)
    one = b.constant("i32", 1)
    odd = b.op("arith.cmpi", [b.op("arith.andi", [lane, one], "i32"), one], "i1", predicate=0)
    chosen = b.add("elect", (), [("i1", 1)]).result
    words = [b.constant("i32", 0x03020100), b.constant("i32", 0x07060504), b.constant("i32", 0x0713)]
    registers = [
        b.add("ballot", [odd], [("i32", 1)]).result,
        b.add("zero", (), [("i32", 1)]).result,
        b.add("permute", words, [("i32", 1)], {"each": 1}).result,
        b.op("arith.extui", [chosen], "i32"),
        warp,
    ]
    b.add("keep", registers[:1])
    never = Block()
    Builder(never).add("trap")
    Builder(never).add("yield")
    b.add("if", [b.constant("i1", 0)], (), {}, [never])
    b.add("fence", (), (), {"kind": "device"})
    place = b.linear((0,), lane=(32, 64, 128, 256), warp=(512,))
    at = b.op("arith.addi", [block.arguments[0], b.op("arith.extui", [place], "i64")], "i64")
    for i, register in enumerate(registers):
        b.store("global", b.op("arith.addi", [at, b.constant("i64", 4 * i)], "i64"), register)
    program = LaneProgram("operations", machine, (Parameter("out", "ptr", "i32"),), block, warps=2)
    expected = np.zeros((2, 16, 8), np.int32)
    expected[..., 0], expected[..., 2] = 0xAAAA, 0x00070103
    expected[:, :, 4] = [[0], [1]]
    simulated = np.zeros_like(expected)
    sim.run(program, 1, {"out": simulated})
    backend = backend_of(machine)
    facts, texts = backend.make(program, CompileOptions(), {}, {})
    with weft.target(machine.name):
        out = weft.cuda.zeros(expected.shape, np.int32)
    backend.driver.load(texts["llir"].encode(), facts).launcher("P", lambda: 0)(1, 1, 1, out.address)
    for found in (simulated, out.numpy()):
        assert (found[..., 3].sum(1) == 1).all()
        found[..., 3] = 0
        assert (found == expected).all(), found


def check_spoken(target: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        run(spoken, (1,), np.arange(32, dtype=np.int32), target=target, BLOCK=32, num_warps=2, debug=True)
    assert "v: 496" in said.getvalue(), said.getvalue()
    try:
        run(spoken, (1,), np.arange(90, 122, dtype=np.int32), target=target, BLOCK=32, num_warps=2, debug=True)
    except DeviceAssertionError as error:
        assert "too large" in str(error)
    else:
        raise AssertionError("the assertion holds")


def check_names() -> None:
    """A target that is misspelled, and the option `arch`, of a vendor that says no more than its rows."""
    for wrong in ("acme:on", "sim:acme:tne"):
        try:
            weft.compiler.as_target(wrong)
        except weft.Unsupported as error:
            assert f"did you mean {wrong.replace('on', 'one').replace('tne', 'one')}? " in str(error), error
        else:
            raise AssertionError(f"{wrong} exists")
    assert [str(weft.compiler.target_of_arch(x)) for x in ("one", "sm_90")] == [BOTH[0], "cuda:90"]


def check_driver() -> None:
    """`driver.active` and measuring, as libraries use them."""
    with weft.target(BOTH[0]):
        active = driver.active
        facts, target = active.utils.get_device_properties(0), active.get_current_target()
        interface = active.get_device_interface()
        assert (str(target), target.warp_size, facts["warpSize"]) == (BOTH[0], 16, 16)
        assert facts["multiprocessor_count"] == 3 and interface.get_device_capability() == (1, 0)
        assert interface.device_count() == 1 and repr(active) == "GPUDriver(Acme One)"
        x = weft.cuda.zeros(4)
        assert weft.testing.do_bench(lambda: x.zero_(), warmup=0, rep=1) >= 0
    if devices.available():
        assert str(driver.active.get_current_target()) == first_backend().driver.current_device().target


with weft.target(BOTH[0]):
    acme = weft.compiler.as_target(BOTH[0])
dialect = importlib.import_module(type(backend_of(acme.machine)).__module__).Dialect
called = recorded(dialect)
wanted = sys.argv[1:] or ["rows", "softmax", "transposed", "matmul", "counted", "scanned", "divided", "driver", "all"]
for kind in (check_rows, check_softmax, check_transposed, check_matmul, check_counted, check_scanned, check_divided):
    for name in BOTH:
        if kind.__name__.removeprefix("check_") in wanted:
            kind(name)
if "driver" in wanted:
    check_names()
    check_driver()
if "all" in wanted:
    check_spoken(BOTH[0])
    check_operations()
    assert asked_for() - called == ABSENT, asked_for() - called
with weft.target(BOTH[0]):
    made = rows.warmup(*[weft.cuda.zeros(64)] * 3, 64, 64, BLOCK=64, grid=(1,))
assert made.asm["lane"] and "ptx" not in made.asm.keys() and made.metadata.warp_size == 16
assert str(made.metadata.target) == BOTH[0] and BOTH[0] in weft.compiler.TARGETS
print("acme")

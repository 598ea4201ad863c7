"""For an entry of the instruction table, a lane program that runs it alone: operands from arrays, results to arrays."""

from __future__ import annotations

import numpy as np

from sim.kit import Kit
from weft.ir.lane import LaneProgram, Value
from weft.targets.instruction import BITS, Array
from weft.targets.meaning import DTYPES
from weft.targets.nvidia import Instruction

STORED = {"tf32": "f32"}
BYTES = 160 << 10
"""Shared memory that matrices of wgmma are taken from."""


def _elem(name: str) -> str:
    return STORED.get(name, name)


def _index(kit: Kit, count: int) -> Value:
    """The element of an array [thread, register] for each register."""
    return kit.add2(kit.mul(kit.thread(), count), kit.linear(range(count)))


def _place(kit: Kit, name: str, count: int, elem: str) -> Value:
    size = max(8, BITS[elem]) // 8
    offset = kit.op("arith.extsi", [kit.mul(_index(kit, count), size)], "i64")
    return kit.op("arith.addi", [kit.arg(name), offset], "i64")


def load(kit: Kit, name: str, count: int, elem: str) -> Value:
    return kit.load("global", _place(kit, name, count, elem), elem)


def save(kit: Kit, name: str, value: Value) -> None:
    kit.store("global", _place(kit, name, value.count, value.elem), value)


def on_registers(entry: Instruction, target: str) -> LaneProgram:
    """For an entry that touches no memory: arrays by the operands' names."""
    given = [f"{o.name}:{_elem(o.elem)}*" for o in entry.operands]
    given += [f"{r.name}_out:{_elem(r.elem)}*" for r in entry.results]
    kit = Kit(*given, warps=1, target=target)
    operands = [load(kit, o.name, o.count, _elem(o.elem)) for o in entry.operands]
    results = [(_elem(r.elem), r.count) for r in entry.results]
    made = kit.instruction(entry.name, operands, results).results
    for result, value in zip(entry.results, made, strict=True):
        save(kit, f"{result.name}_out", value)
    return kit.program()


def random_operand(rng: np.random.Generator, elem: str, shape: tuple[int, ...], whole: bool) -> Array:
    """Small whole numbers, whose sums are exact everywhere, or all kinds of values."""
    dtype = DTYPES[_elem(elem)]
    if elem.startswith("i"):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if whole:
        return rng.integers(-4, 5, shape).astype(np.float32).astype(dtype)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)


def patterns(rng: np.random.Generator, elem: str, shape: tuple[int, ...]) -> Array:
    """Random bits: every kind of float there is."""
    dtype = np.dtype(DTYPES[_elem(elem)])
    bits = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    return np.ascontiguousarray(bits).view(dtype)[..., 0]


def equal_bits(a: Array, b: Array) -> Array:
    """Where two arrays have the same bits, or are both NaN."""
    same = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
    if a.dtype.kind in "iu":
        return np.asarray(same)
    wide = np.float64 if a.dtype == np.float64 else np.float32
    return np.asarray(same | (np.isnan(a.astype(wide)) & np.isnan(b.astype(wide))))


def moves(entry: Instruction, target: str) -> LaneProgram:
    """For ldmatrix and stmatrix: 4 KiB through shared memory, as bytes in `memory` before, in `after` after.

    Lane l works at the row that `rows[l]` names.
    """
    operand = next((o for o in entry.operands if o.name == "value"), None)
    more = ["value:i16*"] if operand else ["d_out:i16*"]
    kit = Kit("memory:i32*", "rows:i32*", "after:i32*", *more, warps=1, target=target)
    buffer = kit.shared(4096)
    words = kit.thread(range(0, 1024, 32))
    at = kit.add2(buffer, kit.mul(words, 4))
    kit.store("shared", at, kit.load("global", kit.place("memory", words), "i32"))
    kit.barrier()
    row = kit.load("global", kit.place("rows", kit.thread()), "i32")
    address = kit.add2(buffer, kit.mul(row, 16))
    if operand:
        value = load(kit, "value", operand.count, "i16")
        kit.instruction(entry.name, [address, value])
    else:
        (result,) = entry.results
        save(kit, "d_out", kit.instruction(entry.name, [address], [("i16", result.count)]).result)
    kit.barrier()
    kit.store("global", kit.place("after", words), kit.load("shared", at, "i32"))
    return kit.program()


def group_product(entry: Instruction, target: str, a: int, b: int) -> LaneProgram:
    """For wgmma: `a` and `b` are descriptors without the address, of matrices at 0 and in the middle of `memory`."""
    registers = entry.params["registers"]
    (result,) = entry.results
    first = [f"a:{_elem(entry.operands[0].elem)}*"] if registers else []
    acc = _elem(result.elem)
    kit = Kit("memory:i32*", *first, f"c:{acc}*", f"d_out:{acc}*", warps=4, target=target)
    buffer = kit.shared(BYTES)
    kit.allocations[0].alignment = 1024
    words = kit.thread(range(0, BYTES // 4, 128))
    kit.store("shared", kit.add2(buffer, kit.mul(words, 4)), kit.load("global", kit.place("memory", words), "i32"))
    kit.add("fence", (), (), {"kind": "async"})
    kit.barrier()

    def descriptor(offset: int, bits: int) -> Value:
        at = kit.op("arith.shrui", [kit.add2(buffer, offset), kit.int(4)], "i32")
        low = kit.op("arith.extui", [kit.op("arith.andi", [at, kit.int(0x3FFF)], "i32")], "i64")
        return kit.op("arith.ori", [low, kit.constant("i64", bits - (1 << 64) if bits >> 63 else bits)], "i64")

    c = load(kit, "c", result.count, acc)
    left = load(kit, "a", entry.operands[0].count, _elem(entry.operands[0].elem)) if registers else descriptor(0, a)
    kit.instruction("wgmma.fence", [])
    shape = [(acc, result.count)]
    made = kit.instruction(entry.name, [left, descriptor(BYTES // 2, b), c, kit.int(1)], shape)
    kit.instruction("wgmma.commit_group", [])
    save(kit, "d_out", kit.add("await", made.results, shape, {"kind": "product", "pending": 0}).result)
    return kit.program()

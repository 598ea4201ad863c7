"""Inline assembly on AMD's GPUs in the simulator: arithmetic on registers (`instructions`), waits, the clock.

    v_cmp_gt_f32 vcc, $1, $2
    v_cndmask_b32 $0, $1, $2, vcc       ; one instruction a line, the result first

Every warp, lane and call is done at once. Operands are the registers of the constraints, numbers, `vcc`; `-` and `|x|`
before floats. Registers by their names, memory, exchanges between lanes and jumps are `Unsupported`.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from weft.base import Unsupported
from weft.ir.lane import LaneOp

from ..inline import constraints_of, given, settle
from ..machine import Context
from ..values import Array
from .instructions import ROWS, Row

NOTHING = re.compile(r"s_(?:nop|waitcnt\w*|wait_\w+|delay_alu|sleep|clause|setprio|sched\w*)$")
"""What waits, or gives hints: in the simulator there is nothing to do."""
CLOCKS = ("s_memrealtime", "s_memtime")
MESSAGE = ("s_sendmsg_rtn_b64", "sendmsg(MSG_RTN_GET_REALTIME)")
"""How the clock is read, on CDNA and from gfx11 on."""
TICK = 10
"""Nanoseconds between two of its values."""
MASKS = ("vcc", "vcc_lo")
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
         "i32": np.int32, "u64": np.uint64}  # fmt: skip
REGISTER = re.compile(r"\$\{?(\d+)(?::\w)?\}?$")
INTEGER = re.compile(r"-?(?:0[xX][\da-fA-F]+|\d+)$")
FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?$")


class AssemblyError(Exception):
    """Text that the simulator has no meaning for; the words say what."""


class Statement(NamedTuple):
    """One instruction, its operands as texts."""

    name: str
    operands: tuple[str, ...]


@lru_cache(maxsize=256)
def statements(text: str) -> tuple[Statement, ...]:
    """The instructions of a text, without comments.

    >>> statements("v_add_f32_e32 $0, -$1, |$2|  ; a sum")
    (Statement(name='v_add_f32', operands=('$0', '-$1', '|$2|')),)
    """
    found = []
    for line in text.splitlines():
        line = re.sub(r";.*|//.*|/\*.*?\*/", "", line).strip()
        name, _, rest = line.partition(" ")
        if name:
            operands = tuple(x.strip() for x in rest.split(",")) if rest.strip() else ()
            found.append(Statement(re.sub(r"_e(?:32|64)$", "", name), operands))
    return tuple(found)


def executed(text: str, registers: dict[str, Array]) -> None:
    """Run a text on registers, which are bits in words of 32 or 64: AssemblyError for what it cannot read.

    >>> registers = {"$1": np.full((1, 1, 1), 40, np.uint32)}
    >>> executed("v_add_u32 $0, $1, 2", registers)
    >>> int(registers["$0"].item())
    42
    """
    run = _Run(registers)
    with np.errstate(all="ignore"):
        for statement in statements(text):
            run.step(statement)


class _Run:
    """One execution of a text."""

    def __init__(self, registers: dict[str, Array]) -> None:
        self.registers = registers

    def step(self, statement: Statement) -> None:
        """One instruction."""
        name, operands = statement
        if NOTHING.match(name):
            return
        if name in CLOCKS or (name == MESSAGE[0] and operands[1:] == MESSAGE[1:]):
            self.write(name, operands[0], np.full((1, 1, 1), time.monotonic_ns() // TICK, np.uint64))
            return
        row = ROWS.get(name)
        if row is None:
            raise AssemblyError(f"`{name}`")
        given = operands[1:] if not row.accumulates else (*operands[1:], operands[0])
        if len(given) != len(row.operands):
            raise AssemblyError(f"`{name}` with {len(operands)} operands")
        self.write(name, operands[0], self.computed(row, given), is_mask=row.result == "mask")

    def computed(self, row: Row, operands: tuple[str, ...]) -> Array:
        """The bits of the result."""
        values = [self.read(text, kind) for text, kind in zip(operands, row.operands, strict=True)]
        if not row.result.startswith("2x"):
            return _bits(row.meaning(*(v[0] for v in values)), row.result)
        low, high = (_bits(row.meaning(*half), row.result[2:]) for half in zip(*values, strict=True))
        width = 8 * low.dtype.itemsize
        wide = np.dtype(f"u{width // 4}")
        return np.asarray(low.astype(wide) | high.astype(wide) << wide.type(width))

    def read(self, text: str, kind: str) -> tuple[Array, ...]:
        """An operand as numbers of a kind; both halves of a packed one."""
        if kind == "mask":
            if text not in MASKS:
                raise AssemblyError(f"a mask in `{text}`")
            return (self.named(MASKS[0]),)
        if (match := re.fullmatch(r"-(?![\d.])(.*)|\|(.*)\|", text)) is not None:
            inner = self.read(match[1] or match[2], kind)
            if kind[-3] != "f":
                raise AssemblyError(f"`{text}` as an integer")
            return tuple(-x if match[1] else np.abs(x) for x in inner)
        parts = 2 if kind.startswith("2x") else 1
        element = kind.removeprefix("2x")
        if element[1:] == "24":
            word = self.read(text, f"{element[0]}32")[0]
            return (word & 0xFFFFFF if element[0] == "u" else word << 8 >> 8,)
        dtype = np.dtype(TYPES[element])
        if INTEGER.match(text) or FLOAT.match(text):
            return (_constant(text, dtype),) * parts
        if (register := REGISTER.match(text)) is None:
            raise AssemblyError(f"the operand `{text}`")
        bits = self.named(f"${register[1]}")
        width = 8 * dtype.itemsize
        words = [(bits >> bits.dtype.type(width * i)).astype(f"u{width // 8}") for i in range(parts)]
        return tuple(np.ascontiguousarray(w).view(dtype) for w in words)

    def named(self, name: str) -> Array:
        """A register that has been written."""
        if name not in self.registers:
            raise AssemblyError(f"`{name}`, which is read before it is written")
        return self.registers[name]

    def write(self, name: str, target: str, bits: Array, *, is_mask: bool = False) -> None:
        """Set a register."""
        register = REGISTER.match(target)
        if is_mask and target in MASKS:
            self.registers[MASKS[0]] = bits
        elif register is None or is_mask:
            raise AssemblyError(f"the result `{target}` of `{name}`")
        else:
            self.registers[f"${register[1]}"] = bits


def _constant(text: str, dtype: np.dtype[np.generic]) -> Array:
    """A number in the text: a float is one, an integer is a pattern of bits, but for small ones of doubles."""
    if FLOAT.match(text):
        return np.full((1, 1, 1), float(text), dtype if dtype.kind == "f" else np.float32).view(dtype)
    bits = int(text, 0) & (1 << 8 * dtype.itemsize) - 1
    return np.full((1, 1, 1), bits, f"u{dtype.itemsize}").view(dtype)


def _bits(x: Array, kind: str) -> Array:
    """A result as the bits of its type; integers wrap."""
    if kind == "mask":
        return x
    dtype = np.dtype(TYPES[kind])
    if dtype.kind != "f" and x.dtype.kind == "f":
        x = x.astype(np.int64)
    return np.ascontiguousarray(x.astype(dtype)).view(f"u{dtype.itemsize}")


def assembly(context: Context, op: LaneOp) -> None:
    """All calls at once."""
    text = str(op.attrs["text"])
    registers = {n: x.astype(np.uint32) if x.dtype.itemsize < 4 else x for n, x in given(context, op).items()}
    for i, constraint in enumerate(constraints_of(op)):
        if constraint in ("s", "r") and f"${i}" in registers:  # of the first lane
            registers[f"${i}"] = registers[f"${i}"][:, :1]
    try:
        executed(text, registers)
    except AssemblyError as error:
        raise Unsupported(
            f"inline assembly with {error} in the simulator",
            context.batch.program.target,
            op.span,
            hint="the simulator runs arithmetic on the registers of the constraints, waits and the clock",
        ) from error
    settle(context, op, registers, outside=any(name in text for name in (*CLOCKS, MESSAGE[0])))

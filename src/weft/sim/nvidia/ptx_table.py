"""PTX's instructions, each with its meaning: text to NumPy, once for all who run PTX.

    computed(("add", "f16x2"), [a, b])          # [the bits of the sums]

Inline assembly in the simulator and the interpreter that judges what the compiler emits (tests/ptx) read this table. It
knows nothing of lane programs and of Weft's own operations, so that the judge stays independent of them: it imports
NumPy and its neighbours `ptx_*` alone. Meanings are those of NVIDIA's "Parallel Thread Execution ISA" 8; sections are
named as in its chapter "Instruction Set". Registers are arrays of bits of any shape.

What lanes, memory and control have to do with each other is the reader's: `Registers` reads operands, runs what only
registers take part in, and asks its subclass for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import ClassVar

import numpy as np

from .ptx_conversions import CONVERSION_WORDS, converted
from .ptx_floats import FLOAT_WORDS, compare_floats, float_operation, is_kind
from .ptx_integers import INTEGERS, Function, compare_integers
from .ptx_text import Group, Number, Operand, PTXError, Register, Special, Statement
from .ptx_values import (
    BITS,
    DTYPES,
    FLOATS,
    PAIRS,
    WORDS,
    Array,
    as_bits,
    halves,
    is_float,
    joined,
    viewed,
)

Name = tuple[str, ...]


def _selected(name: Name, x: list[Array]) -> Array:
    return np.where(x[2], x[0], x[1])


def _tested(name: Name, x: list[Array]) -> Array:
    return is_kind(name[1], x[0], name[-1])


def _set(name: Name, x: list[Array]) -> Array:
    """set: all ones, or 1.0."""
    one = np.uint32(0x3F800000 if name[-2] == "f32" else 0xFFFFFFFF)
    return np.where(_related(name, x), one, np.uint32(0))


def _related(name: Name, x: list[Array]) -> Array:
    """Whether the relation holds that setp and set name."""
    type = name[-1]
    return compare_floats(name, type, *x[:2]) if is_float(type) else compare_integers(name[1], type, *x[:2])


_COMBINE: dict[str, np.ufunc] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _predicates(name: Name, x: list[Array]) -> list[Array]:
    """setp: whether the relation holds and whether not, each combined with a third operand; of a pair, of each half."""
    if name[-1] in PAIRS:
        split = zip(*(halves(v, 32) for v in x[:2]), strict=True)
        predicates = [_related((*name[:-1], PAIRS[name[-1]]), list(both)) for both in split]
    else:
        holds = _related(name, x)
        predicates = [holds, ~holds]
    combine = next((_COMBINE[part] for part in name[2:] if part in _COMBINE), None)
    return predicates if combine is None else [combine(v, x[2]) for v in predicates]


@cache
def _meaning(name: Name) -> Callable[[Name, list[Array]], list[Array]]:
    """What computes the results of an instruction. PTXError for a name, or a word in it, that has no meaning here."""
    base, words = name[0], set(name[1:-1])
    function: Function
    if base == "setp":
        return _predicates
    if base in ("set", "selp", "testp", "cvt"):
        function = {"set": _set, "selp": _selected, "testp": _tested, "cvt": converted}[base]
        words_known = CONVERSION_WORDS.split() if base == "cvt" else list(words)
        words -= set(name[-2:])
    elif is_float(name[-1]) and base in FLOAT_WORDS:
        function, words_known = float_operation, FLOAT_WORDS[base].split()
    elif base in INTEGERS and not is_float(name[-1]):
        function, words_known = INTEGERS[base][0], INTEGERS[base][1].split()
    else:
        raise PTXError(f"`{'.'.join(name)}`")
    if words - set(words_known):
        raise PTXError(f"`{'.'.join(name)}`")
    return lambda n, x: [function(n, x)]


@cache
def operand_types(name: Name) -> tuple[str, ...]:
    """The types that the operands behind the result are read as."""
    _meaning(name)
    base, type = name[0], name[-1]
    if base in ("shl", "shr", "bfe"):
        return (type, "b32", "b32")
    if base == "bfi":
        return (type, type, "b32", "b32")
    if base in ("setp", "selp", "set"):
        return (type, type, "pred")
    if base == "mad" and "wide" in name:
        return (type, type, f"{type[0]}{2 * BITS[type]}")
    return ("b32",) * 4 if base in ("dp4a", "prmt", "lop3", "shf") else (type,) * 3


def computed(name: Name, operands: list[Array]) -> list[Array]:
    """The results of an instruction that only registers take part in, by its name and its operands' bits.

    >>> computed(("max", "s32"), [np.uint32([5]), np.uint32([2**32 - 1])])
    [array([5], dtype=uint32)]
    """
    return _meaning(name)(name, operands)


# -- operands ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _constant(number: Number, type: str, shape: tuple[int, ...]) -> Array:
    if number.bits is None:
        bits = BITS[type]
        value = np.full(shape, number.value & (1 << bits) - 1, WORDS[type])
    else:
        value = np.full(shape, number.value, f"u{number.bits // 8}")
        if type in FLOATS and BITS[type] != number.bits:
            value = as_bits(value.view(f"f{number.bits // 8}").astype(FLOATS[type]))
    value.flags.writeable = False
    return value


class Registers:
    """Who holds registers and runs statements: a subclass says what registers are, and what is done with others."""

    constants: ClassVar[tuple[int, ...]] = (1,)
    """The shape of a constant."""

    def __init__(self) -> None:
        self.registers: dict[str, Array] = {}

    def special(self, name: str) -> Array:
        """A register of the hardware, as `%laneid`."""
        raise PTXError(f"the register %{name}")

    def unset(self, name: str) -> Array:
        """A register that nothing has written."""
        raise PTXError(f"`{name.partition('#')[0]}`, which is read before it is written")

    def put(self, name: str, bits: Array) -> None:
        """Set a register, in the threads that take part."""
        self.registers[name] = bits

    def read(self, operand: Operand, type: str) -> Array:
        """An operand as bits of a type."""
        if isinstance(operand, Register):
            bits = self.registers.get(operand.name)
            bits = self.unset(operand.name) if bits is None else bits
            if type == "pred":
                return np.asarray(bits == 0 if operand.negated else bits != 0)
            return bits.astype(WORDS[type], copy=False)
        if isinstance(operand, Number):
            return _constant(operand, type, self.constants)
        if isinstance(operand, Special):
            return self.special(operand.name).astype(WORDS[type], copy=False)
        if not isinstance(operand, Group):
            raise PTXError("memory where a register is expected")
        size = BITS[type] // len(operand.parts)
        bits = np.zeros((), WORDS[type])
        for k, part in enumerate(operand.parts):
            bits = bits | self.read(part, f"b{size}").astype(bits.dtype) << size * k
        return bits

    def write(self, operand: Operand, bits: Array) -> None:
        """Set a register, or those that lie side by side, the first the lowest bits."""
        if isinstance(operand, Group):
            size = 8 * bits.dtype.itemsize // len(operand.parts)
            for k, part in enumerate(operand.parts):
                self.write(part, (bits >> size * k).astype(f"u{size // 8}"))
        elif not isinstance(operand, Register):
            raise PTXError("a result that is no register")
        elif operand.name != "_":
            self.put(operand.name, bits)

    def compute(self, statement: Statement) -> None:
        """An instruction that only registers take part in."""
        name, operands = statement.name, statement.operands
        if name[0] == "mov":
            self.write(operands[0], self.read(operands[1], name[-1]))
            return
        values = [self.read(x, type) for x, type in zip(operands[1:], operand_types(name), strict=False)]
        results = computed(name, self.checked(name, values))
        self.write_each(operands[0], results)

    def checked(self, name: Name, operands: list[Array]) -> list[Array]:
        """The operands, if they are allowed."""
        return operands

    def write_each(self, operand: Operand, results: Iterable[Array]) -> None:
        """Results to as many registers as there are: `p|q`."""
        targets = operand.parts if isinstance(operand, Group) else (operand,)
        for target, result in zip(targets, results, strict=False):
            self.write(target, result)


# -- lanes ------------------------------------------------------------------------------------------------------------

FOLDS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
"""What redux makes of the values of lanes."""


def source_lanes(name: Name, lane: Array, by: Array, control: Array) -> tuple[Array, Array]:
    """shfl.sync: the lane whose value each gets, and whether it is in range; one out of range gets its own.

    The clamp is in bits 0 to 4 of the last operand, the mask of segments in bits 8 to 12.
    """
    by, segment, clamp = by & 31, control >> 8 & 31, control & 31
    last = lane & segment | clamp & ~segment
    mode = next((part for part in name if part in ("up", "down", "bfly", "idx")), "idx")
    source = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": lane & segment | by & ~segment}[mode]
    inside = source >= last if mode == "up" else source <= last
    return np.where(inside, source, lane), inside


def lane_masks(lane: Array) -> dict[str, Array]:
    """%lanemask_eq and the others."""
    bit = np.uint32(1) << lane.astype(np.uint32)
    below = bit - np.uint32(1)
    return {"eq": bit, "lt": below, "le": bit | below, "ge": ~below, "gt": ~(bit | below)}


# -- memory -----------------------------------------------------------------------------------------------------------

_ATOMIC: dict[str, Callable[[Array, Array], Array]] = {
    **FOLDS, "exch": lambda old, b: b, "inc": lambda old, b: np.where(old >= b, 0, old + 1),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - 1),
}  # fmt: skip


def _swapped(old: Array, b: Array, c: Array) -> Array:
    return np.where(old == b, c, old)


@cache
def atomic(name: Name) -> Callable[..., Array]:
    """What atom and red leave in memory, of the bits there and those of the operands."""
    type = name[-1]
    kind = next((part for part in name[1:-1] if part in _ATOMIC or part == "cas"), None)
    if kind is None or (is_float(type) and kind not in ("add", "exch")):
        raise PTXError(f"`{'.'.join(name)}`")
    if kind == "cas":
        return _swapped
    if type in PAIRS:
        single, bits = atomic((*name[:-1], PAIRS[type])), BITS[type]

        def both(old: Array, b: Array) -> Array:
            low, high = (single(*half) for half in zip(halves(old, bits), halves(b, bits), strict=True))
            return joined(low, high)

        return both
    update, dtype = _ATOMIC[kind], DTYPES[type]
    return lambda old, b: as_bits(np.asarray(update(viewed(old, type), viewed(b, type))).astype(dtype))

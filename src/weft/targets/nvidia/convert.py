"""cvt: conversions between floats that LLVM has no operation for: packed pairs, towards zero, fp8, tf32.

An entry takes and gives elements in order; where PTX wants the upper half first, the text swaps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from weft.ops import ELEMENTS
from weft.ops.dtypes import DTYPES
from weft.ops.rounding import round_to, toward_zero

from ..instruction import BITS, Array, Instruction, Operand

__all__ = ["convert_instructions", "toward_zero"]

PTX = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
WORDS = {32: "r", 16: "h"}


def _clipped(x: Array, elem: str) -> Array:
    largest = ELEMENTS[elem].largest
    return np.clip(x, -largest, largest)


def _narrow(elem: str, mode: str, saturate: bool, relu: bool) -> Callable[..., tuple[Array, ...]]:
    def run(a: Array) -> tuple[Array, ...]:
        x = a.astype(np.float32)
        if relu:
            x = np.where(x > 0, x, np.where(np.isnan(x), x, np.float32(0)))
        if saturate:
            x = _clipped(x, elem)
        return (toward_zero(x, elem) if mode == "rz" else round_to(x, elem),)

    return run


def _widen(elem: str) -> Callable[..., tuple[Array, ...]]:
    return lambda a: (a.astype(np.float32).astype(DTYPES[elem]),)


def _tf32(a: Array) -> tuple[Array, ...]:
    """Nearest, ties away from zero; infinities and NaN stay."""
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return (np.where(np.isfinite(a), rounded, bits).astype(np.uint32).view(np.float32),)


def _pair(name: str, elem: str) -> Operand:
    """Two elements in one register, or in two if they are f32."""
    bits = 2 * BITS[elem]
    return Operand(name, elem, 2, "f" if elem == "f32" else WORDS[bits])


def _entry(
    name: str, to: str, source: str, since: int, meaning: Callable[..., tuple[Array, ...]], ptx: str
) -> Instruction:
    operand = "<a.1>, <a.0>" if source == "f32" else "<a>"
    return Instruction(
        name=name,
        since=since,
        text=f"{name} <d>, {operand};",
        operands=(_pair("a", source),),
        results=(_pair("d", to),),
        semantics=meaning,
        cost=2,
        version=ptx,
    )


def convert_instructions() -> Iterator[Instruction]:
    """All entries of cvt."""
    for elem in ("f16", "bf16"):
        for mode in ("rn", "rz"):
            for relu in ("", ".relu"):
                meaning = _narrow(elem, mode, False, bool(relu))
                yield _entry(f"cvt.{mode}{relu}.{elem}x2.f32", elem, "f32", 80, meaning, "7.0")
    for elem, short in PTX.items():
        meaning = _narrow(elem, "rn", True, False)
        yield _entry(f"cvt.rn.satfinite.{short}x2.f32", elem, "f32", 89, meaning, "8.1")
        yield _entry(f"cvt.rn.satfinite.{short}x2.f16x2", elem, "f16", 89, meaning, "8.1")
        yield _entry(f"cvt.rn.f16x2.{short}x2", "f16", elem, 89, _widen("f16"), "8.1")
    yield Instruction(
        name="cvt.rna.tf32.f32",
        since=80,
        text="cvt.rna.tf32.f32 <d>, <a>;",
        operands=(Operand("a", "f32", 1, "f"),),
        results=(Operand("d", "f32", 1, "r"),),
        semantics=_tf32,
        cost=2,
    )

"""What entries of matrix products have in common: MFMA of CDNA (mfma.py) and WMMA of RDNA (wmma.py).

Layouts are those that the language has names for (layouts/zoo/amd.py); what is said here is which of them is of which
instruction. Each product has two entries, which are one instruction: a transposed result is what comes out where the
operands change places, as the transpose of A B is the product of their transposes.

    mfma.f32.16x16x16f16               a lane has 4 consecutive elements of a column of the result
    mfma.f32.16x16x16f16.transposed    of a row: they are stored at once, and are an operand of the next product

Products are exact and are summed with the accumulator in f64, then rounded once (`targets/meaning.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from weft.layouts import DistributedLayout, DotOperandLayout, LinearLayout
from weft.machines import Machine

from ..instruction import BITS, Array, Instruction, Operand
from ..meaning import from_matrix, multiply, tf32, to_matrix

Shape: TypeAlias = tuple[int, int, int]
Arguments: TypeAlias = tuple[tuple[str, str | int], ...]
Named: TypeAlias = Callable[[Sequence[int], Machine], DistributedLayout]

GFX9A, GFX942, GFX950, GFX11, GFX12, GFX1250 = 0x90A, 0x942, 0x950, 0x1100, 0x1200, 0x1250
"""The first generation of each kind of matrix unit. What is after gfx11's comes with gfx1200."""

LLVM = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "i32": "i32", "i8": "i8"}


def vector(count: int, elem: str) -> str:
    """LLVM's type of so many elements; those of 8 bits are in words."""
    if BITS[elem] == 8:
        count, elem = count // 4, "i32"
    return f"<{count} x {LLVM[elem]}>" if count > 1 else LLVM[elem]


def tile_of(layout: DistributedLayout, shape: Sequence[int]) -> LinearLayout:
    """The layout of one instruction's operand or result, of one wave."""
    return layout.to_linear(list(shape)).sublayout(["register", "lane"], ["dim0", "dim1"])


def _run(total: LinearLayout) -> int:
    """How many elements in a row a lane has of a transposed result, register after register; all where it has none,
    or every other one."""
    registers, length = total.bases["register"], 1
    while length.bit_length() <= len(registers) and registers[length.bit_length() - 1] == (0, length):
        length *= 2
    return length if length > 1 else 1 << 30


def _semantics(
    layouts: tuple[LinearLayout, LinearLayout, LinearLayout], accumulator: str, types: tuple[str, str]
) -> Callable[..., tuple[Array, ...]]:
    def view(x: Array, kind: str) -> Array:
        if kind == "tf32":
            return tf32(x)
        return x.view(np.uint8) if kind == "u8" else x

    def run(x: Array, y: Array, z: Array) -> tuple[Array, ...]:
        a, b, c = layouts
        left, right = to_matrix(view(x, types[0]), a), to_matrix(view(y, types[1]), b)
        return (from_matrix(multiply(left, right, to_matrix(z, c), accumulator), c),)

    return run


def entries(
    name: str,
    shape: Shape,
    elems: tuple[str, str],
    accumulator: str,
    since: int,
    until: int,
    cost: float,
    *,
    k_width: int,
    named: Mapping[bool, Named],
    machine: Machine,
    described: str,
    arguments: Callable[[str, str], Arguments],
    returns: str,
    types: tuple[str, str] | None = None,
    suffix: str = "",
) -> Iterator[Instruction]:
    """The entries of one intrinsic: transposed, which is first as most results are stored row by row, and as it is.

    `named` gives the layout of results by whether it is transposed; `arguments` the intrinsic's for the names of what
    its rows and its columns are made of; `types` what operands of 8 bits or of f32 are taken for.
    """
    m, n, k = shape
    for transposed in (True, False):
        result = named[transposed]([1, 1], machine)
        total = tile_of(result, (m, n))
        a = tile_of(DotOperandLayout(0, result, k_width), (m, k))
        b = tile_of(DotOperandLayout(1, result, k_width), (k, n))
        kinds = types or elems
        operands = [
            Operand(letter, elem, layout.in_dims["register"], "r", layout)
            for letter, elem, layout in (("a", elems[0], a), ("b", elems[1], b), ("c", accumulator, total))
        ]
        yield Instruction(
            name=f"{name}{suffix}{'.transposed' if transposed else ''}",
            since=since,
            until=until,
            text=f"llvm.amdgcn.{name}",
            operands=tuple(operands),
            results=(Operand("d", accumulator, total.in_dims["register"], "r", total),),
            semantics=_semantics((a, b, total), accumulator, kinds),
            cost=cost,
            params={
                "shape": shape,
                "accumulator": accumulator,
                "types": kinds,
                "multiplies": tuple("u8" if kind == "u8" else elem for kind, elem in zip(kinds, elems, strict=True)),
                "k_width": k_width,
                "run": _run(total),
                "transposed": transposed,
                "named": named[transposed],
                "described": described.format(transposed=transposed),
                "arguments": arguments("b", "a") if transposed else arguments("a", "b"),
                "returns": returns,
            },
        )


def by_transposition(layout: Callable[..., DistributedLayout]) -> dict[bool, Named]:
    """The layouts of results, transposed or not, by one function of that, of the warps and the machine."""
    return {transposed: partial(layout, transposed) for transposed in (True, False)}


def constant(*numbers: int, type: str = "i32") -> Arguments:
    """Arguments that are constants."""
    return tuple((type, number) for number in numbers)

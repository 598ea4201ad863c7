"""DPAS (dot product accumulate systolic): a warp multiplies `repeat` rows by 16 columns, 8 words of 32 bits deep.

    dpas.8x16x16.f32.f16.f16       8 x 16 (A) by 16 x 16 (B): K is 8 words of two f16
    dpas.8x8x16.f32.f16.f16        of DG2: 8 columns, for 8 lanes

A lane has 16 bits of K of a row of A (32 where there are 8 lanes), and of B the words of its column: two, four or one
consecutive elements of K. Those are the layouts of `IntelDPASLayout`. Products are exact and are summed with the
accumulator, then rounded once.

SPIR-V has it as `OpSubgroupMatrixMultiplyAccumulateINTEL` (extension SPV_INTEL_subgroup_matrix_multiply_accumulate),
whose last operand says what A, B and the sums are taken for (`TAKEN`). Older compilers know functions for it instead,
which a module imports (`imported`): those of OpenCL's extension cl_intel_subgroup_matrix_multiply_accumulate, with the
operands in order, and of IGC's own for tf32, with the sums first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from weft.layouts import DotOperandLayout, IntelDPASLayout, LinearLayout
from weft.machines import Machine
from weft.machines.intel import DG2, PVC

from ..instruction import BITS, Array, Instruction, Operand
from ..meaning import from_matrix, multiply, tf32, to_matrix

DEPTH, REPEATS = 8, (8, 4, 2, 1)
SIGNED_A, SIGNED_B = 0x1, 0x2
TAKEN = {"f16": 0x400 | 0x800, "bf16": 0x1000 | 0x2000, "tf32": 0x100 | 0x200, "i8": 0x10 | 0x20}
"""What the last operand says of words of A and of B."""
VECTORS = {1: "", 2: "Dv2_", 4: "Dv4_", 8: "Dv8_"}
LETTERS = {"i16": "s", "i32": "i", "float": "f", "u16": "t", "u32": "j"}
NAME = "__spirv_SubgroupMatrixMultiplyAccumulateINTEL"


class _Row(NamedTuple):
    elem: str
    accumulator: str
    kind: str
    imported: str
    """The function that older compilers know, but for the types of its arguments."""


_ROWS = (
    _Row("f16", "f32", "f16", "intel_sub_group_f16_f16_matrix_mad_k16"),
    _Row("bf16", "f32", "bf16", "intel_sub_group_bf16_bf16_matrix_mad_k16"),
    _Row("f32", "f32", "tf32", "__builtin_IB_sub_group16_fdpas_f_f_tf32_tf32_8_{}"),
    _Row("i8", "i32", "i8", "intel_sub_group_{}_{}_matrix_mad_k32"),
)


def layout_of(repeat: int, columns: int, channel: int, warps: Sequence[int], machine: Machine) -> IntelDPASLayout:
    """The layout of a result that so many warps along each dimension make."""
    return IntelDPASLayout(repeat, DEPTH, columns, channel, list(warps), [1] * len(warps), machine.lanes)


def vector(count: int, elem: str) -> str:
    """LLVM's type of so many words."""
    return elem if count == 1 else f"<{count} x {elem}>"


def mangled(name: str, arguments: Sequence[tuple[int, str]]) -> str:
    """A function's name with the types of its arguments, by the rules of C++ for vectors: equal ones are named once.

    >>> mangled("f", [(1, "i32"), (8, "i16"), (8, "i32"), (8, "float"), (1, "i32")])
    '_Z1fiDv8_sDv8_iDv8_fi'
    >>> mangled("g", [(8, "i32"), (8, "i32"), (8, "i32")])
    '_Z1gDv8_iS_S_'
    """
    spelled, seen = [], dict[str, str]()
    for count, elem in arguments:
        text = VECTORS[count] + LETTERS[elem]
        if count > 1 and text in seen:
            spelled.append(seen[text])
            continue
        if count > 1:
            seen[text] = "S_" if not seen else f"S{len(seen) - 1}_"
        spelled.append(text)
    return f"_Z{len(name)}{name}{''.join(spelled)}"


def _semantics(
    layouts: Sequence[LinearLayout], row: _Row, signed: tuple[bool, bool]
) -> Callable[..., tuple[Array, ...]]:
    def view(x: Array, is_signed: bool) -> Array:
        if row.kind == "tf32":
            return tf32(x)
        return x.view("uint8") if row.elem == "i8" and not is_signed else x

    def run(x: Array, y: Array, z: Array) -> tuple[Array, ...]:
        a, b, c = layouts
        left, right = to_matrix(view(x, signed[0]), a), to_matrix(view(y, signed[1]), b)
        return (from_matrix(multiply(left, right, to_matrix(z, c), row.accumulator), c),)

    return run


def _made(row: _Row, repeat: int, signed: tuple[bool, bool], columns: int) -> Instruction:
    """That for as many lanes as it has columns."""
    channel = 32 // BITS[row.elem]
    depth = DEPTH * channel
    layout = IntelDPASLayout(repeat, DEPTH, columns, channel, [1, 1], [1, 1], columns)
    widths = layout.k_widths
    a, b = (
        DotOperandLayout(i, layout, width).to_linear(shape).sublayout(["register", "lane"], ["dim0", "dim1"])
        for i, width, shape in ((0, widths[0], [repeat, depth]), (1, widths[1], [depth, columns]))
    )
    c = layout.to_linear([repeat, columns]).sublayout(["register", "lane"], ["dim0", "dim1"])
    kinds = tuple(row.kind if row.elem != "i8" else "s8" if s else "u8" for s in signed)
    bits = 32 if row.kind == "tf32" or columns == 8 else 16
    words = "float" if row.kind == "tf32" else f"i{bits}", "float" if row.kind == "tf32" else "i32"
    total = "i32" if row.accumulator == "i32" else "float"
    counts = [a.in_dims["register"] * BITS[row.elem] // bits, DEPTH, repeat]
    shapes = [*zip(counts, (*words, total), strict=True)]
    types = [vector(*shape) for shape in shapes]
    taken = TAKEN[row.kind]
    if row.elem == "i8":
        taken |= SIGNED_A * signed[0] | SIGNED_B * signed[1]
    asked = (("i32", depth), (types[0], "a"), (types[1], "b"), (types[2], "c"), ("i32", taken))
    return Instruction(
        name=f"dpas.{repeat}x{columns}x{depth}.{row.accumulator}.{'.'.join(kinds)}",
        since=DG2 if columns == 8 else PVC,
        until=PVC if columns == 8 else 0,
        text=mangled(NAME, [(1, "i32"), *shapes, (1, "i32")]),
        operands=tuple(
            Operand(letter, elem, x.in_dims["register"], "r", x)
            for letter, elem, x in (("a", row.elem, a), ("b", row.elem, b), ("c", row.accumulator, c))
        ),
        results=(Operand("d", row.accumulator, c.in_dims["register"], "r", c),),
        semantics=_semantics((a, b, c), row, signed),
        cost=float(repeat),
        params={
            "shape": (repeat, columns, depth),
            "accumulator": row.accumulator,
            "types": kinds,
            "multiplies": tuple("u8" if kind == "u8" else row.elem for kind in kinds),
            "k_width": widths,
            "named": partial(layout_of, repeat, columns, channel),
            "described": f"IntelDPASLayout({repeat}, {DEPTH}, {columns}, {channel}, warps_per_cta, [1, 1], {columns})",
            "arguments": asked,
            "returns": types[2],
            "imported": _imported(row, repeat, signed, shapes),
            "imported arguments": _order(row, zip(types, "abc", strict=True)),
        },
    )


def _imported(row: _Row, repeat: int, signed: tuple[bool, bool], shapes: Sequence[tuple[int, str]]) -> str:
    """The function for the same that older compilers know, of the operands alone: IGC's own has a plain name."""
    if row.kind == "tf32":
        return row.imported.format(repeat)
    name = row.imported.format(*("i8" if s else "u8" for s in signed))
    kinds = [kind if s else kind.replace("i", "u") for (_, kind), s in zip(shapes, (*signed, True), strict=True)]
    return mangled(name, [(count, kind) for (count, _), kind in zip(shapes, kinds, strict=True)])


def _order(row: _Row, operands: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What that function is called with."""
    a, b, c = operands
    return (c, a, b) if row.kind == "tf32" else (a, b, c)


def dpas_instructions() -> Iterator[Instruction]:
    """All entries: the most rows first, since those cost as much for each product."""
    for repeat, columns, row in product(REPEATS, (16, 8), _ROWS):
        if row.kind == "tf32" and columns == 8:  # which DG2 does not have
            continue
        for left, right in product((True, False), repeat=2):
            if row.elem == "i8" or (left and right):
                yield _made(row, repeat, (left, right), columns)

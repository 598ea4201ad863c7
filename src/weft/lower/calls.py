"""Calls of library functions, prints, inline assembly, and the unpacking of packed numbers."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from weft.ir import int_value, is_tensor
from weft.ir.gpu import layout_of
from weft.ir.lane import Value
from weft.layouts import LinearLayout, f2, infer

from .context import Context, elem_of, lowering
from .shapes import settle


@lowering("tt.extern_elementwise")
def _extern(c: Context, op: Operation) -> None:
    """libdevice.SYMBOL; who reads the program knows CUDA's symbols."""
    symbol = str(getattr(op.properties["symbol"], "data", ""))
    operands = [c[x] for x in op.operands]
    counts = {v.count for v in operands} - {1}
    if len(counts) > 1:
        operands = [c.whole(x) for x in op.operands]
    c[op.results[0]] = c.build.op(f"libdevice.{symbol}", operands, elem_of(op.results[0].type))


@lowering("tt.elementwise_inline_asm")
def _inline_asm(c: Context, op: Operation) -> None:
    text, constraints = (str(getattr(op.properties[n], "data", "")) for n in ("asm_string", "constraints"))
    attrs = {
        "text": text,
        "constraints": constraints,
        "pure": bool(int_value(op.properties["pure"])),
        "pack": int_value(op.properties["packed_element"]),
    }
    results = [(elem_of(r.type), c.count(r.type)) for r in op.results]
    lane_op = c.build.add("assembly", [c.whole(x) for x in op.operands], results, attrs)
    c.set_all(op.results, lane_op.results)


@lowering("tt.print")
def _print(c: Context, op: Operation) -> None:
    prefix = str(getattr(op.properties["prefix"], "data", ""))
    values = [c.whole(x) for x in op.operands]
    layouts = [layout_of(x.type) if is_tensor(x.type) else None for x in op.operands]
    signed = [bool(s) for s in op.properties["isSigned"].get_values()] or [True] * len(values)  # type: ignore[attr-defined]
    attrs = {"prefix": prefix, "hex": bool(int_value(op.properties["hex"]))}
    if len({v.count for v in values}) > 1:  # tiles in different layouts, or scalars beside tiles
        for i, (value, layout, sign) in enumerate(zip(values, layouts, signed, strict=True)):
            told = {"layouts": (layout,), "places": (_places(layout),), "signed": (sign,)}
            c.build.add("print", [value], (), attrs | told | {"operand": i, "operands": len(values)})
        return
    places = tuple(map(_places, layouts))
    c.build.add("print", values, (), {**attrs, "layouts": tuple(layouts), "places": places, "signed": tuple(signed)})


def _places(layout: LinearLayout | None) -> dict[str, Any] | None:
    """Which element a register is, for those who know no layouts: for each dimension its size and what `linear` takes;
    which registers are no copies of others, and the bits of lane, warp and block that are 0 where a thread's are none.
    """
    if layout is None:
        return None
    dims = []
    for dim, size in layout.out_dims.items():
        part = layout.sublayout(layout.in_dims, [dim])
        columns = {d: tuple(part.in_columns(d)) for d in ("lane", "warp", "block")}
        dims.append((size, {"registers": tuple(f2.span(part.in_columns("register"))), **columns}))
    masks = layout.free_variable_masks()
    registers = [r for r in range(layout.in_dims["register"]) if not r & masks["register"]]
    return {"dims": dims, "registers": registers, **{d: masks[d] for d in ("lane", "warp", "block")}}


@lowering("ub.poison")
def _poison(c: Context, op: Operation) -> None:
    result = op.results[0]
    c[result] = c.build.add("undefined", (), [(elem_of(result.type), c.count(result.type))]).result


# -- e2m1 -------------------------------------------------------------------------------------------------------------


@lowering("ttg.fp4_to_fp")
def _fp4_to_fp(c: Context, op: Operation) -> None:
    """Two numbers of each byte, the lower half first, side by side."""
    source, result = op.operands[0], op.results[0]
    packed = c.build.op("arith.extui", [c.whole(source)], "i16")
    elem = elem_of(result.type)
    halves = [packed, c.build.op("arith.shrui", [packed, c.number(4, "i16")], "i16")]
    wide = [_e2m1(c, half, elem) for half in halves]
    count = packed.count
    both = c.build.add("join", wide, [(elem, 2 * count)]).result
    pairs = c.build.rename(both, [half * count + r for r in range(count) for half in (0, 1)])
    settle(c, result, pairs, infer.fp4_to_fp_result(c.layout(source), int_value(op.properties["axis"])))


def _e2m1(c: Context, code: Value, elem: str) -> Value:
    """Four bits (sign, two of exponent, one of mantissa) as a 16-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6."""
    mantissa, bias = (10, 15) if elem == "f16" else (7, 127)

    def do(name: str, a: Value, b: int) -> Value:
        return c.build.op(f"arith.{name}", [a, c.number(b, "i16")], "i16")

    half = (bias - 1) << mantissa
    magnitude = do("andi", code, 7)
    sign = do("shli", do("andi", code, 8), 12)
    normal = do("addi", do("shli", magnitude, mantissa - 1), half)
    is_one = c.build.op("arith.cmpi", [magnitude, c.number(1, "i16")], "i1", predicate=0)
    is_more = c.build.op("arith.cmpi", [magnitude, c.number(1, "i16")], "i1", predicate=8)
    small = c.build.select(is_one, c.number(half, "i16"), c.number(0, "i16"))
    bits = c.build.op("arith.ori", [c.build.select(is_more, normal, small), sign], "i16")
    return c.build.op("arith.bitcast", [bits], elem)

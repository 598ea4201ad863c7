"""How each operation is written, for hints: an example that is right, else its form with the operands' names.

    >>> written("tt.splat")
    '%r = tt.splat %x : f32 -> tensor<64xf32>'
    >>> written("arith.extsi")
    '%r = arith.extsi %x : tensor<64xi8> to tensor<64xi32>'

The examples are read and verified by a test, so they show how types follow from each other too.
"""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.irdl import PropertyDef

from weft.ops.row import INTEGERS, Kind
from weft.ops.table import ROWS

from .elements import (
    Attributes,
    Choice,
    Flag,
    Form,
    Hints,
    Mark,
    Maybe,
    Named,
    Piece,
    Signature,
    Text,
    Type,
    Types,
    Value,
    Values,
)
from .forms import CASTS, FORMS, OPERATIONS, SAME

_ROWS = "tensor<16x32xf32>"
_POINTERS = "tensor<64x!tt.ptr<f32>>"
_SUM = "({ ^bb0(%a: f32, %b: f32): %s = arith.addf %a, %b : f32"
_CAST_TYPES = {
    ("int", "wider"): ("i8", "i32"), ("int", "narrower"): ("i32", "i8"), ("int", ""): ("i32", "index"),
    ("float", "wider"): ("f16", "f32"), ("float", "narrower"): ("f32", "f16"), ("any", "bits"): ("i32", "f32"),
}  # fmt: skip
_KINDS = {"int": "i32", "float": "f32", "pointer": "!tt.ptr<f32>"}

# fmt: off
EXAMPLES: dict[str, str] = {
    "builtin.module": "module { tt.func public @kernel(%x: !tt.ptr<f32>) { tt.return } }",
    "tt.func": "tt.func public @kernel(%x: !tt.ptr<f32>, %n: i32) { tt.return }",
    "tt.return": "tt.return",
    "tt.get_program_id": "%r = tt.get_program_id x : i32",
    "tt.get_num_programs": "%r = tt.get_num_programs x : i32",
    "tt.print": 'tt.print " x: " {hex = false, isSigned = array<i32: 1>} : %x : tensor<64xi32>',
    "tt.assert": 'tt.assert %c, "why" : tensor<64xi1>',
    "tt.addptr": f"%r = tt.addptr %p, %i : {_POINTERS}, tensor<64xi32>",
    "tt.fp_to_fp": "%r = tt.fp_to_fp %x, rounding = rtne : tensor<64xf32> -> tensor<64xf16>",
    "tt.clampf": "%r = tt.clampf %x, %low, %high, propagateNan = none : tensor<64xf32>",
    "math.fpowi": "%r = math.fpowi %x, %n : tensor<64xf32>, tensor<64xi32>",
    "arith.mulsi_extended": "%low, %high = arith.mulsi_extended %x, %y : i32",
    "arith.mului_extended": "%low, %high = arith.mului_extended %x, %y : i32",
    "tt.make_range": "%r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>",
    "tt.splat": "%r = tt.splat %x : f32 -> tensor<64xf32>",
    "tt.unsplat": "%r = tt.unsplat %x : tensor<1xf32>",
    "tt.broadcast": "%r = tt.broadcast %x : tensor<16x1xf32> -> tensor<16x32xf32>",
    "tt.expand_dims": "%r = tt.expand_dims %x {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>",
    "tt.trans": f"%r = tt.trans %x {{order = array<i32: 1, 0>}} : {_ROWS} -> tensor<32x16xf32>",
    "tt.reshape": f"%r = tt.reshape %x : {_ROWS} -> tensor<512xf32>",
    "tt.cat": "%r = tt.cat %x, %y : tensor<64xf32> -> tensor<128xf32>",
    "tt.join": "%r = tt.join %x, %y : tensor<64xf32> -> tensor<64x2xf32>",
    "tt.split": "%a, %b = tt.split %x : tensor<64x2xf32> -> tensor<64xf32>",
    "tt.load": f"%r = tt.load %p, %mask, %other : {_POINTERS}",
    "tt.store": f"tt.store %p, %x, %mask : {_POINTERS}",
    "tt.atomic_rmw":
        "%r = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %mask : "
        f"({_POINTERS}, tensor<64xf32>, tensor<64xi1>) -> tensor<64xf32>",
    "tt.atomic_cas":
        "%r = tt.atomic_cas acq_rel, gpu, %p, %old, %new : (!tt.ptr<i32>, i32, i32) -> i32",
    "tt.make_tensor_ptr":
        "%r = tt.make_tensor_ptr %p, [%rows, %columns], [%stride, %one], [%i, %j] {order = array<i32: 1, 0>} : "
        "<tensor<16x32xf32>>",
    "tt.advance": f"%r = tt.advance %p, [%i, %j] : <{_ROWS}>",
    "tt.make_tensor_descriptor":
        f"%r = tt.make_tensor_descriptor %p, [%rows, %columns], [%stride, %one] : <f32>, <{_ROWS}>",
    "tt.descriptor_load": f"%r = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<{_ROWS}> -> {_ROWS}",
    "tt.descriptor_store": f"tt.descriptor_store %d[%i, %j], %x : !tt.tensordesc<{_ROWS}>, {_ROWS}",
    "tt.descriptor_reduce": f"tt.descriptor_reduce add, %d[%i, %j], %x : !tt.tensordesc<{_ROWS}>, {_ROWS}",
    "tt.descriptor_gather":
        f"%r = tt.descriptor_gather %d[%rows, %j] : (!tt.tensordesc<tensor<1x32xf32>>, tensor<16xi32>, i32) -> {_ROWS}",
    "tt.descriptor_scatter":
        f"tt.descriptor_scatter %d[%rows, %j], %x : !tt.tensordesc<tensor<1x32xf32>>, tensor<16xi32>, i32, {_ROWS}",
    "tt.dot":
        "%r = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<32x64xf16> -> tensor<16x64xf32>",
    "tt.dot_scaled":
        "%r = tt.dot_scaled %a scale %s, %b scale %t, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : "
        "tensor<16x32xf8E4M3FN>, tensor<16x1xi8> * tensor<32x64xf8E4M3FN>, tensor<64x1xi8> -> tensor<16x64xf32>",
    "tt.reduce":
        f'%r = "tt.reduce"(%x) <{{axis = 0 : i32}}> {_SUM} tt.reduce.return %s : f32 }}) : (tensor<64xf32>) -> f32',
    "tt.scan":
        f'%r = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> {_SUM} tt.scan.return %s : f32 }}) : '
        "(tensor<64xf32>) -> tensor<64xf32>",
    "tt.reduce.return": "tt.reduce.return %s : f32",
    "tt.scan.return": "tt.scan.return %s : f32",
    "tt.map_elementwise.return": "tt.map_elementwise.return %s : f32",
    "tt.histogram": "%r = tt.histogram %x : tensor<64xi32> -> tensor<16xi32>",
    "tt.gather":
        "%r = tt.gather %x[%i] {axis = 0 : i32} : (tensor<64xf32>, tensor<32xi32>) -> tensor<32xf32>",
    "scf.for":
        "%r = scf.for %i = %low to %high step %one iter_args(%sum = %zero) -> (f32) : i32 { scf.yield %sum : f32 }",
    "scf.if": "%r = scf.if %c -> (f32) { scf.yield %x : f32 } else { scf.yield %y : f32 }",
    "scf.while": "%r = scf.while (%a = %x) : (i32) -> i32 { scf.condition(%c) %a : i32 } do { "
                 "^bb0(%b: i32): scf.yield %b : i32 }",
    "scf.yield": "scf.yield %x : f32",
    "scf.condition": "scf.condition(%c) %x : i32",
    "cf.br": "cf.br ^bb1(%x : i32)",
    "cf.cond_br": "cf.cond_br %c, ^bb1, ^bb2(%x : i32)",
    "arith.constant": "%r = arith.constant dense<0.0> : tensor<64xf32>",
    "arith.cmpi": "%r = arith.cmpi slt, %x, %y : tensor<64xi32>",
    "arith.cmpf": "%r = arith.cmpf olt, %x, %y : tensor<64xf32>",
    "arith.select": "%r = arith.select %c, %x, %y : tensor<64xi1>, tensor<64xf32>",
    "ub.poison": "%r = ub.poison : i32",
    "llvm.intr.assume": "llvm.intr.assume %c : i1",
    "ttg.convert_layout":
        "%r = ttg.convert_layout %x : tensor<64xf32, #blocked> -> tensor<64xf32, #blocked1>",
    "ttg.local_alloc":
        "%r = ttg.local_alloc %x : (tensor<64xf32, #blocked>) -> !ttg.memdesc<64xf32, #shared, #smem>",
    "ttg.local_load":
        "%r = ttg.local_load %m : !ttg.memdesc<64xf32, #shared, #smem> -> tensor<64xf32, #blocked>",
    "ttg.local_store":
        "ttg.local_store %x, %m : tensor<64xf32, #blocked> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>",
}
# fmt: on


def _shown(piece: Piece) -> str:
    """A piece of a form, with names for what stands there and brackets around what may be absent."""
    match piece:
        case Mark():
            return piece.text
        case Value():
            return f"%{piece.group}"
        case Values():
            return f"%{piece.group}, ..."
        case Type() | Types():
            return f"type(%{piece.group})"
        case Signature():
            inputs = ", ".join(f"type(%{g})" for g in piece.operands)
            return f"({inputs}) -> ({', '.join(f'type(%{g})' for g in piece.results)})"
        case Maybe():
            return f"[{piece.mark}{''.join(map(_shown, piece.pieces))}]"
        case Choice():
            return f"({' | '.join(piece.choices)})"
        case Flag():
            return f"[ {piece.word}]"
        case Text():
            return f'"{piece.prop}"'
        case Named():
            return f"@{piece.prop}"
        case Hints() | Attributes():
            return ""
    return (
        str(getattr(piece, "prop", "..."))
        if not hasattr(piece, "groups")
        else ", ".join(f"type(%{g})" for g in piece.groups)
    )


def _needed(cls: type[Operation], form: Form | None) -> str:
    """The properties that must be given in braces."""
    definition = cls.get_irdl_definition()  # type: ignore[attr-defined]
    left_out = {"overflowFlags", "fastmath", "operandSegmentSizes"} | (
        form.hidden | {*form.defaults} if form else set()
    )
    names = [name for name, d in definition.properties.items() if type(d) is PropertyDef and name not in left_out]
    return f"{{{', '.join(f'{name} = ...' for name in names)}}}" if names else ""


def _cast_types(kind: Kind) -> tuple[str, str]:
    if kind.source == kind.result:
        return _CAST_TYPES[kind.source, kind.how]
    whole = "i64" if "pointer" in kind else "i32"
    source, target = (whole if part == "int" else _KINDS[part] for part in (kind.source, kind.result))
    return source, target


def written(name: str) -> str | None:
    """An example of an operation, or its form; None for a name that no operation has."""
    name = "builtin.module" if name == "module" else name
    if name in EXAMPLES:
        return EXAMPLES[name]
    if name in SAME:
        whole = name not in ROWS or ROWS[name].kind == INTEGERS
        letters = ", ".join(f"%{letter}" for letter in "xyz"[: SAME[name]])
        return f"%r = {name} {letters} : tensor<64x{'i32' if whole else 'f32'}>"
    if name in CASTS:
        source, target = _cast_types(ROWS[name].kind)
        return f"%r = {name} %x : tensor<64x{source}>{CASTS[name]}tensor<64x{target}>"
    cls = OPERATIONS.get(name)
    if cls is None:
        return None
    definition = cls.get_irdl_definition()  # type: ignore[attr-defined]
    form = FORMS.get(name)
    left = ", ".join(f"%{r}" for r, _ in definition.results) + (" = " if definition.results else "")
    if form is None:
        operands, results = (
            ", ".join(f"{mark}%{g}{end}" for g, _ in groups)
            for groups, mark, end in ((definition.operands, "", ""), (definition.results, "type(", ")"))
        )
        types = ", ".join(f"type(%{g})" for g, _ in definition.operands)
        braces = _needed(cls, None)
        return f'{left}"{name}"({operands}){f" <{braces}>" if braces else ""} : ({types}) -> ({results})'
    pieces, braces = [_shown(piece) for piece in form.pieces], _needed(cls, form)
    for i, piece in enumerate(form.pieces):
        if isinstance(piece, Attributes) and braces:
            pieces[i] = f" {braces}"
    return f"{left}{name} {''.join(pieces).strip()}".rstrip()

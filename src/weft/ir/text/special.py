"""The text of operations that hold regions, branch, or begin with something unusual: read and written side by side."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, builtin
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..attrs import empty_dict, int_attr, int_value, segments, str_attr, unit_attr
from ..locations import UNKNOWN_LOC
from ..types import function_type, i1, i64, index, like
from .elements import Parts
from .forms import OPERATIONS
from .reader import SPECIAL, Reader
from .spelling import attr_text, dict_text, symbol_text
from .writer import WRITE, Writer

Entry = list[tuple[str, int, Attribute, Attribute]]
Names = list[tuple[str, int]]


def _maybe_dict(attributes: dict[str, Attribute], word: str = "") -> str:
    return f" {word}{dict_text(attributes)}" if attributes else ""


# -- builtin.module ------------------------------------------------------------------------------------------------


def _read_module(r: Reader, name: str) -> Operation:
    properties: dict[str, Attribute] = {}
    if r.kinds[r.at] == "y":
        properties["sym_name"] = builtin.StringAttr(r.symbol())
    attributes = r.dictionary() if r.accept("attributes") else {}
    region = r.region([], isolated=True)
    if len(region.blocks) > 1:
        r.fail("a module has one block", r.at - 1)
    return builtin.ModuleOp.create(properties=properties, attributes=attributes, regions=(region,))


def _write_module(w: Writer, op: Operation, left: str) -> None:
    name = op.properties.get("sym_name")
    shown = f" {symbol_text(name.data)}" if isinstance(name, builtin.StringAttr) else ""
    w.line(f"module{shown}{_maybe_dict(op.attributes, 'attributes ')} {{")
    w.blocks(op.regions[0])
    w.line("}" + w.location(op.location))


# -- tt.func -------------------------------------------------------------------------------------------------------


def _read_arguments(r: Reader) -> tuple[Entry, list[Attribute]]:
    entry: Entry = []
    attrs: list[Attribute] = []
    r.expect("(")
    for at in r.items(")"):
        name = ""
        if r.kinds[at] == "v":
            name = r.need("v")
            r.expect(":")
        type = r.type()
        attrs.append(builtin.DictionaryAttr(r.dictionary()) if r.texts[r.at] == "{" else empty_dict())
        entry.append((name, at, type, r.optional_location()))
    return entry, attrs


def _read_results(r: Reader) -> tuple[list[Attribute], list[Attribute]]:
    types: list[Attribute] = []
    attrs: list[Attribute] = []
    if r.accept("->"):
        if not r.accept("("):
            return [r.type()], [empty_dict()]
        for _ in r.items(")"):
            types.append(r.type())
            attrs.append(builtin.DictionaryAttr(r.dictionary()) if r.texts[r.at] == "{" else empty_dict())
    return types, attrs


def _read_func(r: Reader, name: str) -> Operation:
    at = r.at - 1
    parts = Parts()
    for word in ("public", "private", "nested"):
        if r.accept(word):
            parts.properties["sym_visibility"] = str_attr(word)
    parts.properties["sym_name"] = builtin.StringAttr(r.symbol())
    entry, arg_attrs = _read_arguments(r)
    outputs, res_attrs = _read_results(r)
    parts.properties["function_type"] = function_type(tuple(e[2] for e in entry), tuple(outputs))
    if any(a != empty_dict() for a in arg_attrs):
        parts.properties["arg_attrs"] = builtin.ArrayAttr(arg_attrs)
    if any(a != empty_dict() for a in res_attrs):
        parts.properties["res_attrs"] = builtin.ArrayAttr(res_attrs)
    if r.accept("attributes"):
        parts.attributes = r.dictionary()
    if r.texts[r.at] == "{":
        for argument, where, _, _ in entry:
            if not argument:
                r.fail("an argument of a function with a body needs a name", where)
        parts.regions = [r.region(entry, isolated=True)]
    else:
        parts.regions = [Region()]
    return r.finish(OPERATIONS["tt.func"], parts, at)


def _with_attrs(text: str, attrs: Attribute | None, i: int) -> str:
    if isinstance(attrs, builtin.ArrayAttr) and i < len(attrs.data):
        attributes = attrs.data[i]
        if isinstance(attributes, builtin.DictionaryAttr) and attributes.data:
            return f"{text} {dict_text(attributes.data)}"
    return text


def _write_func(w: Writer, op: Operation, left: str) -> None:
    properties = op.properties
    signature = properties["function_type"]
    inputs: Sequence[Attribute] = signature.inputs.data  # type: ignore[attr-defined]
    outputs: Sequence[Attribute] = signature.outputs.data  # type: ignore[attr-defined]
    visibility = properties.get("sym_visibility")
    leave = w.enter_function()
    entry = op.regions[0].blocks.first
    shown: list[str] = []
    for i, type in enumerate(inputs):
        text = _with_attrs(w.type(type), properties.get("arg_attrs"), i)
        if entry is not None:
            location = entry.args[i].location
            text = f"{w.define_argument(entry.args[i], location)}: {text}{w.location(location)}"
        shown.append(text)
    results = [_with_attrs(w.type(t), properties.get("res_attrs"), i) for i, t in enumerate(outputs)]
    arrow = ""
    if results:
        bare = len(results) == 1 and results[0] == w.type(outputs[0])
        arrow = f" -> {results[0]}" if bare else f" -> ({', '.join(results)})"
    word = f"{visibility.data} " if isinstance(visibility, builtin.StringAttr) else ""
    name = symbol_text(properties["sym_name"].data)  # type: ignore[attr-defined]
    head = f"tt.func {word}{name}({', '.join(shown)}){arrow}{_maybe_dict(op.attributes, 'attributes ')}"
    if entry is None:
        w.line(head + w.location(op.location))
    else:
        w.line(head + " {")
        w.blocks(op.regions[0])
        w.line("}" + w.location(op.location))
    leave()


# -- scf -----------------------------------------------------------------------------------------------------------


def _assignments(r: Reader) -> tuple[Names, Names]:
    """`(%x = %y, ...)`: the names on the left and on the right."""
    left: Names = []
    right: Names = []
    r.expect("(")
    for at in r.items(")"):
        left.append((r.need("v"), at))
        r.expect("=")
        right.append((r.need("v"), r.at - 1))
    return left, right


def _terminated(region: Region) -> Region:
    """End the blocks of a region that leave out their empty `scf.yield`."""
    for block in region.blocks:
        last = block.last_op
        if last is None or last.name not in ("scf.yield", "scf.condition", "ub.unreachable"):
            block.add_op(OPERATIONS["scf.yield"].create())
    return region


def _values(r: Reader, names: Names, types: Sequence[Attribute], at: int) -> list[SSAValue]:
    if len(names) != len(types):
        r.fail(f"{len(names)} values, but {len(types)} types for them", at)
    return [r.value(n, t, i) for (n, i), t in zip(names, types, strict=True)]


def _carried(names: Names, types: Sequence[Attribute]) -> Entry:
    return [(n, i, t, UNKNOWN_LOC) for (n, i), t in zip(names, types, strict=True)]


def _read_for(r: Reader, name: str) -> Operation:
    at = r.at - 1
    properties: dict[str, Attribute] = {"unsignedCmp": unit_attr()} if r.accept("unsigned") else {}
    variable = r.need("v"), r.at - 1
    bounds: Names = []
    for word in ("=", "to", "step"):
        r.expect(word)
        bounds.append((r.need("v"), r.at - 1))
    left: Names = []
    right: Names = []
    types: list[Attribute] = []
    if r.accept("iter_args"):
        left, right = _assignments(r)
        r.expect("->")
        types = r.result_types()
    counter: Attribute = r.type() if r.accept(":") else index
    operands = [r.value(n, counter, i) for n, i in bounds] + _values(r, right, types, at)
    region = _terminated(r.region([(*variable, counter, UNKNOWN_LOC), *_carried(left, types)]))
    attributes = r.dictionary() if r.texts[r.at] == "{" else {}
    return OPERATIONS[name].create(
        operands=operands, result_types=types, properties=properties, attributes=attributes, regions=(region,)
    )


def _write_for(w: Writer, op: Operation, left: str) -> None:
    lower, upper, step, *init = [w.name(v) for v in op.operands]
    types = [v.type for v in op.operands[3:]]
    variable, *carried = [w.define_argument(a, a.location) for a in op.regions[0].block.args]
    unsigned = "unsigned " if "unsignedCmp" in op.properties else ""
    head = f"{left}scf.for {unsigned}{variable} = {lower} to {upper} step {step}"
    if carried:
        pairs = ", ".join([f"{a} = {b}" for a, b in zip(carried, init, strict=True)])
        head += f" iter_args({pairs}) -> ({', '.join(map(w.type, types))})"
    if op.operands[0].type != index:
        head += f" : {w.type(op.operands[0].type)}"
    w.line(head + " {")
    w.blocks(op.regions[0], skip_end="scf.yield")
    w.line("}" + _maybe_dict(op.attributes) + w.location(op.location))


def _read_if(r: Reader, name: str) -> Operation:
    condition = r.value(r.need("v"), i1, r.at - 1)
    types = r.result_types() if r.accept("->") else []
    then = _terminated(r.region([]))
    other = _terminated(r.region([])) if r.accept("else") else Region()
    attributes = r.dictionary() if r.texts[r.at] == "{" else {}
    return OPERATIONS[name].create(
        operands=(condition,), result_types=types, attributes=attributes, regions=(then, other)
    )


def _write_if(w: Writer, op: Operation, left: str) -> None:
    types = f" -> ({', '.join([w.type(v.type) for v in op.results])})" if op.results else ""
    w.line(f"{left}scf.if {w.name(op.operands[0])}{types} {{")
    w.blocks(op.regions[0], skip_end="scf.yield")
    if op.regions[1].blocks:
        w.line("} else {")
        w.blocks(op.regions[1], skip_end="scf.yield")
    w.line("}" + _maybe_dict(op.attributes) + w.location(op.location))


def _read_while(r: Reader, name: str) -> Operation:
    at = r.at - 1
    left, right = _assignments(r) if r.texts[r.at] == "(" else ([], [])
    r.expect(":")
    inputs, outputs = r.function_signature()
    operands = _values(r, right, inputs, at)
    before = r.region(_carried(left, inputs))
    r.expect("do")
    after = r.region()
    if not after.blocks:
        after.add_block(Block())
    _terminated(after)
    attributes = r.dictionary() if r.accept("attributes") else {}
    return OPERATIONS[name].create(
        operands=operands, result_types=outputs, attributes=attributes, regions=(before, after)
    )


def _write_while(w: Writer, op: Operation, left: str) -> None:
    init = [w.name(v) for v in op.operands]
    carried = [w.define_argument(a, a.location) for a in op.regions[0].block.args]
    pairs = ", ".join([f"{a} = {b}" for a, b in zip(carried, init, strict=True)])
    signature = w.signature(op)
    w.line(f"{left}scf.while{f' ({pairs})' if pairs else ''} : {signature} {{")
    w.blocks(op.regions[0])
    w.line("} do {")
    w.blocks(op.regions[1], labelled=True)
    w.line("}" + _maybe_dict(op.attributes, "attributes ") + w.location(op.location))


# -- cf ------------------------------------------------------------------------------------------------------------


def _read_branch_values(r: Reader) -> list[SSAValue]:
    if not r.accept("("):
        return []
    at = r.at
    names: Names = [(r.need("v"), at)]
    while r.accept(","):
        names.append((r.need("v"), r.at - 1))
    r.expect(":")
    values = _values(r, names, r.type_list(), at)
    r.expect(")")
    return values


def _branch_text(w: Writer, label: str, values: Sequence[SSAValue]) -> str:
    if not values:
        return label
    return f"{label}({', '.join([w.name(v) for v in values])} : {', '.join([w.type(v.type) for v in values])})"


def _read_br(r: Reader, name: str) -> Operation:
    block = r.successor()
    values = _read_branch_values(r)
    attributes = r.dictionary() if r.texts[r.at] == "{" else {}
    return OPERATIONS[name].create(operands=values, successors=(block,), attributes=attributes)


def _write_br(w: Writer, op: Operation, left: str) -> None:
    text = _branch_text(w, w.label(op.successors[0]), op.operands)
    w.line(f"{left}cf.br {text}{_maybe_dict(op.attributes)}{w.location(op.location)}")


def _read_cond_br(r: Reader, name: str) -> Operation:
    condition = r.value(r.need("v"), i1, r.at - 1)
    if r.texts[r.at] == "weights":
        r.fail("branch weights are not supported")
    r.expect(",")
    then = r.successor()
    then_values = _read_branch_values(r)
    r.expect(",")
    other = r.successor()
    other_values = _read_branch_values(r)
    attributes = r.dictionary() if r.texts[r.at] == "{" else {}
    return OPERATIONS[name].create(
        operands=[condition, *then_values, *other_values],
        properties={"operandSegmentSizes": segments(1, len(then_values), len(other_values))},
        successors=(then, other),
        attributes=attributes,
    )


def _write_cond_br(w: Writer, op: Operation, left: str) -> None:
    _, count, _ = op.properties["operandSegmentSizes"].get_values()  # type: ignore[attr-defined]
    then = _branch_text(w, w.label(op.successors[0]), op.operands[1 : 1 + count])
    other = _branch_text(w, w.label(op.successors[1]), op.operands[1 + count :])
    condition = w.name(op.operands[0])
    w.line(f"cf.cond_br {condition}, {then}, {other}{_maybe_dict(op.attributes)}{w.location(op.location)}")


# -- arith ---------------------------------------------------------------------------------------------------------


def _read_constant(r: Reader, name: str) -> Operation:
    at = r.at - 1
    attributes = r.dictionary() if r.texts[r.at] == "{" else {}
    value = r.attribute()
    if not isinstance(value, builtin.IntegerAttr | builtin.FloatAttr | builtin.DenseIntOrFPElementsAttr):
        r.fail(f"a constant is a number or dense<...>, not {attr_text(value)[:60]}", at + 1)
    return arith.ConstantOp.create(result_types=(value.get_type(),), properties={"value": value}, attributes=attributes)


def _write_constant(w: Writer, op: Operation, left: str) -> None:
    attributes = f"{dict_text(op.attributes)} " if op.attributes else ""
    w.line(f"{left}arith.constant {attributes}{attr_text(op.properties['value'], w.alias)}{w.location(op.location)}")


_PREDICATES = {
    "arith.cmpi": list(arith.CMPI_COMPARISON_OPERATIONS),
    "arith.cmpf": list(arith.CMPF_COMPARISON_OPERATIONS),
}


def _read_compare(r: Reader, name: str) -> Operation:
    predicates = _PREDICATES[name]
    word = r.texts[r.at].strip('"')  # MLIR takes it as a string too
    if word not in predicates:
        r.fail(f"expected one of {', '.join(predicates)}, found {r.found()}")
    r.at += 1
    r.expect(",")
    x = r.need("v"), r.at - 1
    r.expect(",")
    y = r.need("v"), r.at - 1
    properties: dict[str, Attribute] = {"predicate": int_attr(predicates.index(word), i64)}
    r.flags(properties)
    attributes = r.dictionary() if r.texts[r.at] == "{" else {}
    r.expect(":")
    type = r.type()
    operands = (r.value(x[0], type, x[1]), r.value(y[0], type, y[1]))
    return OPERATIONS[name].create(
        operands=operands, result_types=(like(type, i1),), properties=properties, attributes=attributes
    )


def _write_compare(w: Writer, op: Operation, left: str) -> None:
    word = _PREDICATES[op.name][int_value(op.properties["predicate"])]
    x, y = op.operands
    flags = w.flags(op, "predicate")
    w.line(f"{left}{op.name} {word}, {w.name(x)}, {w.name(y)}{flags} : {w.type(x.type)}{w.location(op.location)}")


def _read_select(r: Reader, name: str) -> Operation:
    names: Names = [(r.need("v"), r.at - 1)]
    for _ in range(2):
        r.expect(",")
        names.append((r.need("v"), r.at - 1))
    attributes = r.dictionary() if r.texts[r.at] == "{" else {}
    r.expect(":")
    type = r.type()
    condition: Attribute = i1
    if r.accept(","):
        condition, type = type, r.type()
    operands = [r.value(n, t, i) for (n, i), t in zip(names, (condition, type, type), strict=True)]
    return arith.SelectOp.create(operands=operands, result_types=(type,), attributes=attributes)


def _write_select(w: Writer, op: Operation, left: str) -> None:
    names = ", ".join([w.name(v) for v in op.operands])
    condition = w.type(op.operands[0].type)
    types = w.type(op.results[0].type) if condition == "i1" else f"{condition}, {w.type(op.results[0].type)}"
    w.line(f"{left}arith.select {names}{_maybe_dict(op.attributes)} : {types}{w.location(op.location)}")


SPECIAL.update(
    {
        "module": _read_module,
        "builtin.module": _read_module,
        "tt.func": _read_func,
        "scf.for": _read_for,
        "scf.if": _read_if,
        "scf.while": _read_while,
        "cf.br": _read_br,
        "cf.cond_br": _read_cond_br,
        "arith.constant": _read_constant,
        "arith.cmpi": _read_compare,
        "arith.cmpf": _read_compare,
        "arith.select": _read_select,
    }
)
WRITE.update(
    {
        "builtin.module": _write_module,
        "tt.func": _write_func,
        "scf.for": _write_for,
        "scf.if": _write_if,
        "scf.while": _write_while,
        "cf.br": _write_br,
        "cf.cond_br": _write_cond_br,
        "arith.constant": _write_constant,
        "arith.cmpi": _write_compare,
        "arith.cmpf": _write_compare,
        "arith.select": _write_select,
    }
)

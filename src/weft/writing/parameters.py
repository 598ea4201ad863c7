"""The parameters of a kernel: what each of the user's is in the IR, and how that is written.

    a pointer, a number         one value, x
    a tuple                     a value for each of its items, x[0], x[1]; constants are none
    a descriptor of Gluon's     a tensor map, shape and strides: x, x.shape[0], x.strides[0]
    one of the Triton language  base, padding, shape, strides, each a parameter: x, x_pads_nan, x_shape_0, ...

Triton's Gluon does not take the last ones; Weft's does, where the vendor's passes can take them apart, so that they
stay one parameter. Where the copy engine moves blocks of one, there are tensor maps besides:

    x_base, x_pads_nan, x_shape_0, ... = gl.extra.descriptors.parts(x)
    x_blocks = gl.extra.descriptors.bulk(x, [64, 128], shared)

Where it moves blocks of what pointers point to, launches make the map of several parameters:

    a_blocks = gl.extra.descriptors.made(a, [m, k], [stride, 1], [64, 128], shared)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.base.made_tensors import MadeTensor, Polynomial
from weft.ir import TensorDescType, int_value, shape_of
from weft.ir.gpu import encoding_of
from weft.ir.made_tensors import tensor_of

from . import kinds
from .expressions import Text
from .words import no_word
from .writer import Writer

DESCRIPTOR = "descriptor"
"""The kind of a descriptor whose blocks are copied to shared memory."""


@dataclass
class Given:
    """What the parameters of a kernel have become."""

    parameters: list[str] = field(default_factory=list)
    """The source's, in order."""
    several: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Those of the user's that are several of the source's."""
    types: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Types of the source's parameters that are one value each, and what divides them."""


def give(
    w: Writer, function: Operation, asked: Sequence[str], types: Mapping[str, Any], constants: Any, whole: bool
) -> Given:  # fmt: skip
    """Let the arguments of a kernel have texts; with `whole`, descriptors of the Triton language are one parameter.

    NoWord for what the source cannot take.
    """
    given, values = Given(), list(function.regions[0].blocks[0].args)
    whole |= any(isinstance(v.type, TensorDescType) and _is_part(v, function) for v in values)
    for name in asked:
        if name in constants:
            given.parameters.append(name)
            continue
        kind = types[name]
        if isinstance(kind, (tuple, list)):
            given.parameters.append(name)
            _items(w, name, kind, values)
        elif str(kind).startswith("tensordesc"):
            _descriptor(w, given, name, str(kind), values, function, whole)
        else:
            _plain(w, given, name, str(kind), values.pop(0))
    while values and "tt.made" in _facts(values[0], function):
        _made(w, values.pop(0), function)
    if values:
        raise no_word(function, "with such parameters")
    return given


def _made(w: Writer, value: BlockArgument, function: Operation) -> None:
    """A tensor map that the launch makes of several parameters."""
    given = [w.texts[v].text for v in value.block.args if not isinstance(v.type, TensorDescType)]
    tensor = tensor_of(_facts(value, function)["tt.made"])

    def written(total: Polynomial) -> str:
        terms = [
            " * ".join([*[str(factor)] * (factor != 1 or not ns), *(given[n] for n in ns)]) for factor, ns in total
        ]
        return " + ".join(terms) or "0"

    extents, strides = (", ".join(map(written, part)) for part in (tensor.shape, tensor.strides))
    block = value.type.block_type  # type: ignore[attr-defined]
    layout = encoding_of(block).named  # type: ignore[union-attr]
    named = f"{list(shape_of(block))}, {w.shared.layouts.text(layout)}"
    more = f", further={written(tensor.further)}" if tensor.further else ""
    if tensor.least:
        more += f", least=[{', '.join(f'({given[n]}, {least})' for n, least in tensor.least)}]"
    name = w.names.unused(f"{given[tensor.base]}_blocks")
    _named(w, value, name, DESCRIPTOR)
    w.statement(f"{name} = {EXTRA}.made({given[tensor.base]}, [{extents}], [{strides}], {named}{more})")


def made_tensors(function: Operation) -> list[MadeTensor]:
    """The tensors of which a launch makes maps from several parameters."""
    values = function.regions[0].blocks[0].args
    return [tensor_of(facts["tt.made"]) for v in values if "tt.made" in (facts := _facts(v, function))]


def _made_of(function: Operation) -> set[SSAValue]:
    """The parameters from which a launch makes tensor maps."""
    plain = [v for v in function.regions[0].blocks[0].args if not isinstance(v.type, TensorDescType)]
    return {plain[n] for tensor in made_tensors(function) for n in tensor.numbers}


def _is_part(value: BlockArgument, function: Operation) -> bool:
    """Whether a tensor map is one that a descriptor of the Triton language has besides its parts."""
    return "tt.descriptor" in _facts(value, function)


def _facts(value: BlockArgument, function: Operation) -> Mapping[str, Any]:
    attributes = function.properties.get("arg_attrs")
    return attributes.data[value.index].data if isinstance(attributes, ArrayAttr) else {}


def _named(w: Writer, value: BlockArgument, name: str, kind: str) -> None:
    """Let a value be a variable with this name."""
    w.texts[value] = Text(name, kind)
    w.variables.group(value).name = name


def _expression(w: Writer, value: BlockArgument, text: str, kind: str) -> None:
    """Let a value be written so; where it is the beginning of another variable, by its name."""
    w.texts[value] = Text(text, kind)
    if w.variables.is_shared(value):
        w.assign(value, w.texts[value])


def _plain(w: Writer, given: Given, name: str, kind: str, value: BlockArgument) -> None:
    text = kinds.kind_of(value.type, _sign(kind))
    _named(w, value, name, text)
    _parameter(given, name, value)
    if text == "i64" and value.first_use is not None:  # a launch may give a small number, which is an int32
        w.statement(f"{name} = gl.to_tensor({name}).to(gl.int64)")


def _parameter(given: Given, name: str, value: BlockArgument) -> None:
    function = value.block.parent_op()
    assert function is not None
    facts = _facts(value, function)
    known = int_value(facts["tt.divisibility"]) if "tt.divisibility" in facts else 1
    given.parameters.append(name)
    given.types[name] = kinds.signature_of(kinds.kind_of(value.type)), known


def _items(w: Writer, text: str, kind: Sequence[Any], values: list[BlockArgument]) -> None:
    """The items of a tuple."""
    for i, item in enumerate(kind):
        if isinstance(item, (tuple, list)):
            _items(w, f"{text}[{i}]", item, values)
        elif item != "constexpr":
            value = values.pop(0)
            if str(item).startswith("tensordesc"):
                way_out = "give the descriptor as an argument of its own"
                raise no_word(w.function, "with a descriptor in a tuple", way_out)
            _expression(w, value, f"{text}[{i}]", kinds.kind_of(value.type, _sign(str(item))))


def _descriptor(
    w: Writer, given: Given, name: str, kind: str, values: list[BlockArgument], function: Operation, whole: bool
) -> None:
    if isinstance(values[0].type, TensorDescType):
        rank = _rank(kind)
        value, *numbers = [values.pop(0) for _ in range(1 + 2 * rank)]
        given.parameters.append(name)
        w.texts[value] = Text(name, DESCRIPTOR)
        texts = [f"{name}.{part}[{d}]" for part in ("shape", "strides") for d in range(rank)]
        for number, text in zip(numbers, texts, strict=True):
            _expression(w, number, text, kinds.kind_of(number.type))
        return
    stems = _stems(_rank(kind))
    parts = [values.pop(0) for _ in range(len(stems) + 1)]
    if not whole:
        named = (name, *(w.names.unused(f"{name}_{stem}") for stem in stems))
        for part, value in zip(named, parts, strict=True):
            _named(w, value, part, kinds.kind_of(value.type))
            _parameter(given, part, value)
        given.several[name] = named
        return
    given.parameters.append(name)
    wanted = {value for value in parts if value.first_use is not None} | _made_of(function)
    named = tuple(w.names.unused(f"{name}_{stem}") if value in wanted else "_"
                  for stem, value in zip(("base", *stems), parts, strict=True))  # fmt: skip
    for part, value in zip(named, parts, strict=True):
        _named(w, value, part, kinds.kind_of(value.type))
    if not wanted.isdisjoint(parts):
        w.statement(f"{', '.join(named)} = {EXTRA}.parts({name})")
    while values and isinstance(values[0].type, TensorDescType) and _is_part(values[0], function):
        value = values.pop(0)
        layout = encoding_of(value.type.block_type).named  # type: ignore[attr-defined, union-attr]
        blocks = w.names.unused(f"{name}_blocks")
        _named(w, value, blocks, DESCRIPTOR)
        shape = list(shape_of(value.type.block_type))  # type: ignore[attr-defined]
        w.statement(f"{blocks} = {EXTRA}.bulk({name}, {shape}, {w.shared.layouts.text(layout)})")


EXTRA = "gl.extra.descriptors"


def _rank(kind: str) -> int:
    """Of the tensor: of images more than of their blocks."""
    if kind.startswith("tensordesc_im2col"):
        return int(kind.removesuffix(">").rpartition(",")[2])
    return kind[kind.index("[") : kind.index("]")].count(",") + 1


def _stems(rank: int) -> list[str]:
    return ["pads_nan", *(f"shape_{d}" for d in range(rank)), *(f"stride_{d}" for d in range(rank))]


def _sign(kind: str) -> str:
    """A type of a signature as far as it tells the sign."""
    stars = len(kind) - len(kind.lstrip("*"))
    return "*" * stars + kind[stars:].removeprefix("k")

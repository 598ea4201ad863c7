"""A file of Gluon source with one kernel, made of layout IR as the lowering takes it."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import BlockArgument

from weft.ir import int_value
from weft.machines.vendors import part_of, vendors_with

# imported to fill the table of words
from . import arithmetic, combining, control, copies, kinds, memory, outside, products, shapes
from .expressions import Text
from .layouts import Layouts
from .words import TL, no_word
from .writer import WIDTH, Names, Shared, Writer

__all__ = ["TRITON", "WEFT", "Asked", "GluonSource", "source_of"]

FAMILIES = (arithmetic, combining, control, copies, memory, outside, products, shapes)
VENDORS = tuple(part_of("writing", vendor) for vendor in vendors_with("writing"))
"""The words that vendors have of their own, for the same tables."""
WEFT, TRITON = "weft", "triton.experimental"
"""Packages in which Gluon is found."""
RESERVED = (*keyword.kwlist, "gl", "gluon", "tl", "range", "float", "int", "min", "max", "print")


@dataclass(frozen=True)
class Asked:
    """What the source is made of, for its header and its parameters."""

    parameters: Sequence[str]
    """The user's, in order."""
    constants: Mapping[str, object]
    """Values of those that are known when it is compiled."""
    kinds: Mapping[str, str]
    """The types of the others, as signatures have them."""
    target: str
    file: str = ""
    line: int = 0
    package: str = WEFT
    """Where Gluon is imported from."""


@dataclass(frozen=True)
class GluonSource:
    """A Python file with a kernel in Gluon."""

    text: str
    name: str
    """The kernel's."""
    options: Mapping[str, int]
    """What a launch has to say, `num_warps` and maybe `num_ctas`."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Parameters that have become several: descriptors in the Triton language."""
    types: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Types of the parameters, and what divides them."""

    def __str__(self) -> str:
        return self.text


def source_of(module: ModuleOp, asked: Asked) -> GluonSource:
    """The source of the kernel in a module of layout IR. NoWord where Gluon has none for an operation."""
    (function,) = [op for op in module.body.block.ops if op.name == "tt.func"]
    body = function.regions[0].blocks[0]
    name = str(getattr(function.properties["sym_name"], "data", "kernel"))
    taken = {*RESERVED, *asked.parameters, name}
    names = Names(taken)
    file_names = Names({*taken, *(v.name_hint for op in function.walk() for v in op.results if v.name_hint)})
    shared = Shared(asked.file, Layouts(names.unused), file_names, {}, {})
    writer = Writer(body, shared, names)
    parts = {p: parts_of(p, asked.kinds.get(p, ""), names) for p in asked.parameters if p not in asked.constants}
    values = [part for named in parts.values() for part in named]
    if len(values) != len(body.args):
        raise no_word(function, "with such parameters", "pass pointers and numbers in the place of tuples")
    for part, value in zip(values, body.args, strict=True):
        kind = kinds.kind_of(value.type, _sign(asked.kinds.get(part, "")))
        writer.texts[value] = Text(part, kind)
        writer.variables.group(value).name = part
        if part not in parts and kind == "i64" and value.first_use is not None:
            writer.statement(f"{part} = gl.to_tensor({part}).to(gl.int64)")
    writer.block(body)
    writer.flush()
    options = {"num_warps": int_value(module.attributes["ttg.num-warps"])}
    if "ttg.num-ctas" in module.attributes and int_value(module.attributes["ttg.num-ctas"]) > 1:
        options["num_ctas"] = int_value(module.attributes["ttg.num-ctas"])
    signature = {part: _type_of(value) for part, value in zip(values, body.args, strict=True)}
    parameters = [q for p in asked.parameters for q in parts.get(p, (p,))]
    several = {p: named for p, named in parts.items() if named != (p,)}
    return GluonSource(_file(asked, name, parameters, options, writer), name, options, several, signature)


def parts_of(parameter: str, kind: str, names: Names) -> tuple[str, ...]:
    """The parameters that one is: of a descriptor its base, whether it pads with NaN, shape and strides."""
    if not (kind.startswith("tensordesc<") and kind.endswith("]>")):
        return (parameter,)
    rank = kind[kind.index("[") : kind.index("]")].count(",") + 1
    stems = ["pads_nan", *(f"shape_{d}" for d in range(rank)), *(f"stride_{d}" for d in range(rank))]
    return (parameter, *(names.unused(f"{parameter}_{stem}") for stem in stems))


def _type_of(value: BlockArgument) -> tuple[str, int]:
    """The type of a parameter as signatures have it, and by what it is divisible, as far as that is known."""
    function = value.block.parent_op()
    assert function is not None
    attributes = function.properties.get("arg_attrs")
    facts = attributes.data[value.index].data if isinstance(attributes, ArrayAttr) else {}
    known = int_value(facts["tt.divisibility"]) if "tt.divisibility" in facts else 1
    return kinds.signature_of(kinds.kind_of(value.type)), known


def _sign(kind: str) -> str:
    """A type of a signature as far as it tells the sign."""
    stars = len(kind) - len(kind.lstrip("*"))
    return "*" * stars + kind[stars:].removeprefix("k")


def _file(asked: Asked, name: str, parameters: Sequence[str], options: Mapping[str, int], writer: Writer) -> str:
    shared = writer.shared
    file = asked.file.rpartition("/")[2]
    where = f" of {file}:{asked.line}" if file else ""
    said = ", ".join(f"{option}={value}" for option, value in options.items())
    lines = [f'"""`{name}`{where} as Weft compiles it for {asked.target}, as Gluon source.', ""]
    lines += [f"Launch it with {said}, with the arguments of that kernel."]
    if asked.constants:
        shown = ", ".join(f"{name}={value!r}" for name, value in asked.constants.items())
        lines += [f"It is right for these values only: {shown}."]
    if len(parameters) > len(asked.parameters):
        lines += ["A descriptor is its base, 1 if it pads with NaN and else 0, its shape and its strides."]
    lines += ["Comments are lines of that kernel's file, with their numbers.", '"""', ""]
    lines += [f"from {asked.package} import gluon", f"from {asked.package}.gluon import language as gl"]
    for place in sorted(set(shared.imports.values())):
        if place == TL:
            lines += [f"from {asked.package.partition('.')[0]} import language as tl"]
        else:
            imported = sorted(n for n, p in shared.imports.items() if p == place)
            lines += [f"from {asked.package}.{place} import {', '.join(imported)}"]
    for text, helper in shared.helpers.items():
        lines += ["", "", "@gluon.jit", f"def {helper}{text}"]
    lines += ["", "", "@gluon.jit", *_signature(name, parameters, asked.constants)]
    lines += [f"    {line}" for line in shared.layouts.lines]
    lines += writer.lines or ["    pass"]
    return "\n".join(lines) + "\n"


def _signature(name: str, names: Sequence[str], constants: Mapping[str, object]) -> list[str]:
    """The head of the kernel, in several lines where it is long."""
    parameters = [f"{p}: gl.constexpr" if p in constants else p for p in names]
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= WIDTH + 20:
        return [line]
    return [f"def {name}(", *(f"    {parameter}," for parameter in parameters), "):"]

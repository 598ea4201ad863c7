"""A file of Gluon source with one kernel, made of layout IR as the lowering takes it."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.base.made_tensors import MadeTensor
from weft.ir import int_value
from weft.machines.vendors import part_of, vendors_with

# imported to fill the table of words
from . import arithmetic, combining, control, copies, memory, outside, partitions, products, shapes
from .layouts import Layouts
from .parameters import Given, give, made_tensors
from .words import HOMES, TL, WHOLE
from .writer import WIDTH, Names, Shared, Writer

__all__ = ["TRITON", "WEFT", "Asked", "GluonSource", "source_of"]

FAMILIES = (arithmetic, combining, control, copies, memory, outside, partitions, products, shapes)
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
    kinds: Mapping[str, Any]
    """The types of the others, as signatures have them; a tuple's in a tuple."""
    target: str
    file: str = ""
    line: int = 0
    package: str = WEFT
    """Where Gluon is imported from."""
    vendor: str = ""
    """Whose GPU the target is."""

    @property
    def whole(self) -> bool:
        """Whether descriptors of the Triton language stay one parameter, by words of Weft's own."""
        return self.package == WEFT and self.vendor in WHOLE


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
    made: Sequence[MadeTensor] = ()
    """The tensors of which a launch makes maps from several of the parameters, descriptors counted in parts."""

    def __str__(self) -> str:
        return self.text


def source_of(module: ModuleOp, asked: Asked) -> GluonSource:
    """The source of the kernel in a module of layout IR. NoWord where Gluon has none for an operation."""
    (function,) = [op for op in module.body.block.ops if op.name == "tt.func"]
    body = function.regions[0].blocks[0]
    name = str(getattr(function.properties["sym_name"], "data", "kernel"))
    reserved = (*RESERVED, *HOMES, name)
    hints = {v.name_hint for op in function.walk() for v in op.results if v.name_hint}
    file_names = Names(reserved, within={*asked.parameters, *hints})
    names = Names((*reserved, *asked.parameters), file_names)
    shared = Shared(asked.file, Layouts(file_names.unused), file_names, reserved, {}, {}, name)
    writer = Writer(body, shared, names)
    given = give(writer, function, asked.parameters, asked.kinds, asked.constants, asked.whole)
    writer.block(body)
    writer.flush()
    options = {"num_warps": int_value(module.attributes["ttg.num-warps"])}
    if "ttg.num-ctas" in module.attributes and int_value(module.attributes["ttg.num-ctas"]) > 1:
        options["num_ctas"] = int_value(module.attributes["ttg.num-ctas"])
    text = _file(asked, name, given, options, writer)
    return GluonSource(text, name, options, given.several, given.types, made_tensors(function))


def _file(asked: Asked, name: str, given: Given, options: Mapping[str, int], writer: Writer) -> str:
    shared = writer.shared
    file = asked.file.rpartition("/")[2]
    where = f" of {file}:{asked.line}" if file else ""
    said = ", ".join(f"{option}={value}" for option, value in options.items())
    lines = [f'"""`{name}`{where} as Weft compiles it for {asked.target}, as Gluon source.', ""]
    lines += [f"Launch it with {said}, with the arguments of that kernel."]
    if asked.constants:
        shown = ", ".join(f"{name}={value!r}" for name, value in asked.constants.items())
        lines += [f"It is right for these values only: {shown}."]
    if given.several:
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
    if shared.functions:  # which share layouts with the kernel
        lines += ["", *(f"{n}: gl.constexpr = gl.constexpr({made})" for n, made in shared.layouts.definitions.items())]
    for function in shared.functions:
        lines += ["", "", "@gluon.jit", function]
    lines += ["", "", "@gluon.jit", *_signature(name, given.parameters, asked.constants)]
    if not shared.functions:
        lines += [f"    {n}: gl.constexpr = {made}" for n, made in shared.layouts.definitions.items()]
    lines += writer.lines or ["    pass"]
    return "\n".join(lines) + "\n"


def _signature(name: str, names: Sequence[str], constants: Mapping[str, object]) -> list[str]:
    """The head of the kernel, in several lines where it is long."""
    parameters = [f"{p}: gl.constexpr" if p in constants else p for p in names]
    line = f"def {name}({', '.join(parameters)}):"
    if len(line) <= WIDTH + 20:
        return [line]
    return [f"def {name}(", *(f"    {parameter}," for parameter in parameters), "):"]

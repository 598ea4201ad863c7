"""Writes a module as Triton does: `print_module`.

    module {
      tt.func public @add(%x: !tt.ptr<f32>, %n: i32) attributes {noinline = false} {
        %offs = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
        ...

Values are named by their hint, or by the name in their location (Triton keeps the names of variables there), or by a
number. An operation that is not built as its class says is written in MLIR's generic form, so that it can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from xdsl.dialects.arith import ConstantOp, FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import IntegerAttr, NameLoc
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..types import i1
from .forms import CASTS, FORMS, SAME
from .spelling import dict_text, flags_text, loc_text, quote
from .types import function_text, type_text

Special = Callable[["Writer", Operation, str], None]
WRITE: dict[str, Special] = {}
"""How the operations that `special` reads are written; the last argument is the text of the results, `%x = `."""

_SUFFIX = re.compile(r"(_\d+)+$", re.ASCII)
_CLEAN = re.compile(r"[^\w$.]", re.ASCII)
_NO_NAMES: frozenset[str] = frozenset()


class Writer:
    """The text so far, and the names given out."""

    def __init__(self, locations: bool = False):
        self.lines: list[str] = []
        self.indent = 0
        self.locations = locations
        self._names: dict[SSAValue, str] = {}
        self._used: dict[str, int] = {}
        self._number = 0
        self._argument = 0
        self._labels: dict[Block, str] = {}
        self._aliases: dict[str, str] = {}
        self._alias_of: dict[int, tuple[Attribute, str]] = {}
        self._layouts: dict[str, str] = {}
        self._stems: dict[str, int] = {}
        self._type_of: dict[int, tuple[Attribute, str]] = {}

    # -- names -------------------------------------------------------------------------------------------------

    def name(self, value: SSAValue) -> str:
        """The name of a value; one that is not defined here gets a name that says so."""
        name = self._names.get(value)
        return name if name is not None else f"%undefined_{type_text(value.type)}".replace("<", "_").replace(">", "_")

    def label(self, block: Block) -> str:
        """The label of a block of the current region."""
        return self._labels.get(block, "^elsewhere")

    def _fresh(self, base: str) -> str:
        count = self._used.get(base)
        if count is None:
            self._used[base] = 0
            return base
        while True:
            name = f"{base}_{count}"
            count += 1
            if name not in self._used:
                self._used[base] = count
                self._used[name] = 0
                return name

    def _suggested(self, value: SSAValue, location: Attribute) -> str | None:
        hint = value.name_hint
        if hint is None and isinstance(location, NameLoc):
            hint = _CLEAN.sub("_", location.desc.data)
        if not hint or hint[0].isdigit():
            return None
        return _SUFFIX.sub("", hint) or None

    def define_argument(self, value: SSAValue, location: Attribute) -> str:
        """Name an argument of a block."""
        base = self._suggested(value, location)
        if base is None:
            base = f"arg{self._argument}"
            self._argument += 1
        self._names[value] = name = "%" + self._fresh(base)
        return name

    def _define_results(self, op: Operation) -> str:
        results = op.results
        if not results:
            return ""
        name = self._names.get(results[0])
        if name is not None:  # named when a block before this one used it
            return f"{name} = " if len(results) == 1 else f"{name.removesuffix('#0')}:{len(results)} = "
        base = self._suggested(results[0], op.location)
        if base is None and isinstance(op, ConstantOp):
            base = _constant_name(op)
        if base is not None:
            base = self._fresh(base)
        else:
            base = str(self._number)
            self._number += 1
        if len(results) == 1:
            self._names[results[0]] = f"%{base}"
            return f"%{base} = "
        for i, result in enumerate(results):
            self._names[result] = f"%{base}#{i}"
        return f"%{base}:{len(results)} = "

    # -- types -------------------------------------------------------------------------------------------------

    def type(self, type: Attribute) -> str:
        """A type as text, with aliases for its layouts."""
        entry = self._type_of.get(id(type))
        if entry is None:
            entry = self._type_of[id(type)] = (type, type_text(type, self.alias))
        return entry[1]

    def signature(self, op: Operation) -> str:
        """The types of all operands and all results, `(T, T) -> T`."""
        return function_text([v.type for v in op.operands], [v.type for v in op.results], self.alias)

    def alias(self, text: str, stem: str) -> str:
        """The short name of a layout's text, `#blocked1`; its definition goes to the top of the module."""
        alias = self._layouts.get(text)
        if alias is None:
            count = self._stems.get(stem, 0)
            self._stems[stem] = count + 1
            alias = self._layouts[text] = f"#{stem}{count or ''}"
        return alias

    def layouts(self) -> list[str]:
        """The definitions of the layouts that were written."""
        return [f"{name} = {text}" for text, name in self._layouts.items()]

    # -- locations ---------------------------------------------------------------------------------------------

    def location(self, loc: Attribute) -> str:
        """` loc(#loc3)`, or nothing where locations are not written."""
        if not self.locations:
            return ""
        entry = self._alias_of.get(id(loc))
        if entry is None:
            text = loc_text(loc)
            alias = self._aliases.get(text)
            if alias is None:
                alias = f"#loc{len(self._aliases)}"
                self._aliases[text] = alias
            entry = self._alias_of[id(loc)] = (loc, alias)
        return f" loc({entry[1]})"

    def aliases(self) -> list[str]:
        """The definitions of the locations that were written."""
        return [f"{alias} = loc({text})" for text, alias in self._aliases.items()]

    # -- operations --------------------------------------------------------------------------------------------

    def attributes(self, op: Operation) -> str:
        """The attributes in braces, after a space; nothing where there are none."""
        form = FORMS.get(op.name)
        shown: dict[str, Attribute] = dict(op.attributes)
        if op.properties:
            hidden = form.hidden if form is not None else _NO_NAMES
            defaults: Mapping[str, Attribute] = form.defaults if form is not None else {}
            for key, value in op.properties.items():
                if key not in hidden and defaults.get(key) != value:
                    shown[key] = value
        return f" {dict_text(shown, self.alias)}" if shown else ""

    def line(self, text: str) -> None:
        """Write a line at the current depth."""
        self.lines.append("  " * self.indent + text)

    def operation(self, op: Operation) -> None:
        """Write one operation, with its regions."""
        mark, indent = len(self.lines), self.indent
        left = self._define_results(op)
        try:
            if self._custom(op, op.name, left):
                return
        except (AttributeError, KeyError, IndexError, ValueError, TypeError, VerifyException):
            # The operation does not have what its class says; its generic form shows what it has.
            del self.lines[mark:]
            self.indent = indent
        self._generic(op, left)

    def _custom(self, op: Operation, name: str, left: str) -> bool:
        """Write an operation in its own text, if it has one."""
        special = WRITE.get(name)
        if special is not None:
            special(self, op, left)
            return True
        text: str
        if name in SAME:
            if len(op.operands) != SAME[name] or len(op.results) != 1:
                return False
            text = f"{', '.join([self.name(v) for v in op.operands])}{self.flags(op)}"
            text += f" : {self.type(op.results[0].type)}"
        elif name in CASTS:
            source, result = op.operands[0], op.results[0]
            text = f"{self.name(source)}{self.flags(op)}"
            text += f" : {self.type(source.type)}{CASTS[name]}{self.type(result.type)}"
        else:
            form = FORMS.get(name)
            if form is None:
                return False
            text = "".join([piece.write(self, op) for piece in form.pieces]).lstrip(" ")
        gap = " " if text and text[0] != "(" else ""
        self.line(f"{left}{name}{gap}{text}{self.location(op.location)}")
        return True

    def flags(self, op: Operation, hidden: str = "") -> str:
        """`overflow<nsw>` and the like, then the attributes in braces; nothing where there are none."""
        text = ""
        shown = dict(op.attributes)
        for key, value in op.properties.items():
            if isinstance(value, FastMathFlagsAttr | IntegerOverflowAttr):
                if value.data:
                    text += f" {value.name.removeprefix('arith.')}<{flags_text(value)}>"
            elif key == "isExact":
                text += " exact"
            elif key != hidden:
                shown[key] = value
        return f"{text} {dict_text(shown, self.alias)}" if shown else text

    def _generic(self, op: Operation, left: str) -> None:
        """Write an operation in MLIR's generic form."""
        operands = ", ".join(self.name(v) for v in op.operands)
        head = f"{left}{quote(op.name)}({operands})"
        if op.successors:
            head += f"[{', '.join(self.label(b) for b in op.successors)}]"
        if op.properties:
            head += f" <{dict_text(op.properties, self.alias)}>"
        tail = f" {dict_text(op.attributes, self.alias)}" if op.attributes else ""
        tail += f" : {self.signature(op)}"
        tail += self.location(op.location)
        if not op.regions:
            self.line(head + tail)
            return
        for i, region in enumerate(op.regions):
            self.line(f"{head} ({{" if i == 0 else "}, {")
            self.blocks(region, labelled=True)
        self.line(f"}}){tail}")

    # -- blocks ------------------------------------------------------------------------------------------------

    def enter_function(self) -> Callable[[], None]:
        """Begin with no names in use; call what is returned to come back."""
        saved = self._names, self._used, self._number, self._argument
        self._names, self._used, self._number, self._argument = {}, {}, 0, 0

        def leave() -> None:
            self._names, self._used, self._number, self._argument = saved

        return leave

    def blocks(self, region: Region, labelled: bool = False, skip_end: str = "") -> None:
        """Write the blocks of a region. The first gets a label where `labelled` (if it has arguments or is reached).

        `skip_end` names an operation that is left out at the end of a block where it has no operands.
        """
        saved = self._labels
        blocks = list(region.blocks)
        self._labels = {block: f"^bb{i}" for i, block in enumerate(blocks)}
        for block in blocks if len(blocks) > 1 else ():
            for op in block.ops:
                if any(use.operation.parent is not block for result in op.results for use in result.uses):
                    self._define_results(op)
        for i, block in enumerate(blocks):
            if i > 0 or (labelled and block.args):
                arguments = ", ".join(
                    f"{self.define_argument(a, a.location)}: {self.type(a.type)}{self.location(a.location)}"
                    for a in block.args
                )
                self.line(f"^bb{i}{f'({arguments})' if arguments else ''}:")
            self.indent += 1
            last = block.last_op
            skipped = last is not None and last.name == skip_end and not last.operands and not last.attributes
            for op in block.ops:
                if not (skipped and op is last):
                    self.operation(op)
            self.indent -= 1
        self._labels = saved


def _constant_name(op: ConstantOp) -> str:
    value = op.properties.get("value")
    if isinstance(value, IntegerAttr):
        if value.type == i1:
            return "true" if value.value.data else "false"
        return f"c{value.value.data}_{type_text(value.type)}".replace("-", "m")
    return "cst"


def print_module(op: Operation, locations: bool = False) -> str:
    """The text of a module (or of any operation); with `locations`, each operation says where it came from.

    What is written is read by `parse_module`, and by Triton.
    """
    writer = Writer(locations)
    writer.operation(op)
    return "\n".join([*writer.layouts(), *writer.lines, *writer.aliases()]) + "\n"

"""Statements of Gluon source, in the order of the IR.

Operations are visited in order. What is used once, in the block where it is made, waits to be written in the expression
that uses it; everything else is assigned to a variable. Python computes the parts of an expression from left to right,
so a value may wait as long as what is written before it is computed before it: values that wait are a stack, and an
operation takes its operands from the top of it. Those that lie otherwise are assigned first. So the source computes in
the order of the IR.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.base import Span
from weft.ir import is_tensor, shape_of, span_of_loc
from weft.ir.gpu import MemDescType, encoding_of
from weft.layouts import DistributedLayout

from . import kinds
from .expressions import ATOM, Text
from .layouts import Layouts
from .variables import Variables, is_number
from .words import ABSORBED, SPECIAL, WORDS, no_word

WIDTH = 100
"""Columns after which an expression is no longer made longer."""


class Names:
    """Names that are taken in a function, and new ones; functions of a file share what it has of its own."""

    def __init__(self, taken: Iterable[str] = (), file: Names | None = None, within: Iterable[str] = ()) -> None:
        """`within` are names that functions of a file may give to variables, which nothing of the file itself has."""
        self._taken = set(taken)
        self._file = file
        self._given = set(within)

    def unused(self, stem: str) -> str:
        """A name that nothing has yet."""
        file = self._file
        name = _free(stem, self._taken | self._given | (file._taken if file is not None else set()))
        self._taken.add(name)
        if file is not None:
            file._given.add(name)
        return name


def _free(stem: str, taken: set[str]) -> str:
    """A name that is not taken, made of a stem."""
    stem = re.sub(r"\W", "_", stem) or "t"
    stem = f"t{stem}" if stem[0].isdigit() else stem
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


@dataclass
class Shared:
    """What all functions of a file share."""

    file: str
    """The user's file."""
    layouts: Layouts
    names: Names
    """Those of the file: layouts and functions."""
    reserved: Sequence[str]
    """Names that no function may give to its variables."""
    helpers: dict[str, str]
    """Helper functions: their names, by the text of their parameters and body."""
    imports: dict[str, str]
    """Modules of Gluon that are used, and where they come from."""
    kernel: str = "kernel"
    """The kernel's name."""
    functions: list[str] = field(default_factory=list)
    """Functions that partitions run, whole."""


class Writer:
    """Writes the body of one function."""

    def __init__(
        self, body: Block, shared: Shared, names: Names, indent: int = 1, given: Sequence[SSAValue] = ()
    ) -> None:
        """`given` are the values that the function is called with, in the order of its parameters."""
        self.shared = shared
        self.names = names
        function = body.parent_op()
        assert function is not None
        self.function = function
        """The operation whose region is written."""
        self.variables = Variables(body, given or body.args)
        self.lines: list[str] = []
        self.indent = indent
        self.texts: dict[SSAValue, Text] = {}
        """Values that have a text: variables, numbers, those that wait."""
        self._waiting: list[SSAValue] = []
        self._made_by: dict[SSAValue, Operation] = {}
        """The operations of values that wait."""
        self._spread: dict[SSAValue, SSAValue] = {}
        """Values that are written as smaller ones, which Gluon spreads."""
        self._line = 0

    # -- lines -----------------------------------------------------------------------------------------------------

    def statement(self, text: str) -> None:
        """A line of source."""
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines of a block."""
        self.indent += 1
        before = len(self.lines)
        yield
        if all(line.lstrip().startswith("#") for line in self.lines[before:]):
            self.statement("pass")
        self.indent -= 1

    def comment(self, op: Operation) -> None:
        """The user's line that an operation serves, where it is another one than before."""
        span = user_span(op, self.shared.file)
        if span is None or span.line == self._line:
            return
        self._line = span.line
        text = (span.source_line() or "").strip()
        room = WIDTH + 20 - 4 * self.indent
        text = text if len(text) <= room else text[: room - 3] + "..."
        self.statement(f"# {span.line}: {text}")

    # -- values ----------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> Operation:
        """Write the operations of a block but for the last, which is returned."""
        *ops, last = block.ops
        for op in ops:
            if op.name in ABSORBED and ABSORBED[op.name](op):
                continue
            for number, result in self.variables.early.get(op, ()):
                self.flush()
                self.assign(result, self.number(number))
            word = WORDS.get(op.name)
            if word is None:
                raise no_word(op)
            word(self, op)
        return last

    def number(self, value: SSAValue) -> Text:
        """The text of a constant."""
        attr = value.owner.properties["value"]  # type: ignore[union-attr]
        number: Any
        if isinstance(attr, (IntegerAttr, FloatAttr)):
            number = attr.value.data
        else:
            assert isinstance(attr, DenseIntOrFPElementsAttr)
            number = attr.get_values()[0]
        kind = kinds.kind_of(value.type)
        if kind == "i1":
            number = bool(number)
        return Text(literal(number), kind, shape_of_value(value), layout_of(value), number=number)

    def take(self, *values: SSAValue) -> list[Text]:
        """The texts of operands, in the order in which they will be written."""
        wanted = [v for v in map(self._waits_for, values) if v is not None]
        while sum(len(self.texts[v].text) for v in wanted) > WIDTH - 10:
            self._flush_to(self._waiting.index(wanted[0]) + 1)
            wanted = [v for v in wanted if v in self._waiting]
        top = 0
        while top < len(wanted) and self._waiting[-top - 1 :] == wanted[len(wanted) - top - 1 :]:
            top += 1
        rest = wanted[: len(wanted) - top]
        if rest:
            self._flush_to(max(self._waiting.index(v) for v in rest) + 1)
        for _ in range(top):
            self._waiting.pop()
        return [self._text(v) for v in values]

    def comes_first(self, value: SSAValue, other: SSAValue) -> bool:
        """Whether both wait, the first of them to be computed first."""
        one, two = self._waits_for(value), self._waits_for(other)
        return one is not None and two is not None and self._waiting.index(one) < self._waiting.index(two)

    def _waits_for(self, value: SSAValue) -> SSAValue | None:
        """The value that waits, of which the text of this one is made."""
        value = self.source(value)
        return value if value in self._waiting else None

    def spread(self, value: SSAValue, source: SSAValue) -> None:
        """Let `value` be written as its source, which Gluon spreads itself."""
        self._spread[value] = source

    def source(self, value: SSAValue) -> SSAValue:
        """What a value is written as: what Gluon spreads to it, or itself."""
        while value in self._spread:
            value = self._spread[value]
        return value

    def see(self, outside: Writer) -> None:
        """Values that another writer has spread are the same here."""
        self._spread.update(outside._spread)

    def text(self, value: SSAValue) -> Text:
        """The text of a value that does not wait."""
        return self._text(value)

    def _text(self, value: SSAValue) -> Text:
        if value in self._spread:
            source = self._text(self._spread[value])
            inner = source.inner if source.inner is not None else source.shape
            return replace(source, shape=shape_of_value(value), layout=layout_of(value) if not source.layout or
                           len(inner) != len(shape_of_value(value)) else source.layout,
                           spread=source.number is None, inner=inner)  # fmt: skip
        text = self.texts.get(value)
        if text is None:
            assert is_number(value), value
            text = self.number(value)
        return text

    def give(self, op: Operation, text: Text, *, effect: bool = False) -> None:
        """The text of an operation's result: a variable, or waiting to be used; with `effect` a statement at least."""
        self.give_value(op, op.results[0], text, effect=effect)

    def give_value(self, op: Operation, value: SSAValue, text: Text, *, effect: bool = False) -> None:
        """The text of one result."""
        hints = hints_of(op)
        if hints:
            text = with_hints(text, hints)
        self.texts[value] = text
        waits = value.has_one_use() and not effect and not self.variables.is_shared(value) and not value.name_hint
        if waits and len(text.text) <= WIDTH:
            user = next(iter(value.uses)).operation
            if user.parent is op.parent:
                self._waiting.append(value)
                self._made_by[value] = op
                return
        self.flush()
        if value.first_use is None:
            self.comment(op)
            self.statement(text.text)
            return
        self.comment(op)
        self.assign(value, text)

    def assign(self, value: SSAValue, text: Text) -> None:
        """Assign a text to the variable of a value."""
        text = self.whole(text)
        name = self.name(value)
        if name != text.text:
            self.statement(f"{name} = {text.text}")
        self.texts[value] = text.named(name)

    def several(self, op: Operation, text: str, results: Sequence[Text]) -> None:
        """An operation that gives several values: one statement, which assigns them all."""
        self.flush()
        self.comment(op)
        names = [self.name(r) for r in op.results]
        self.statement(f"{', '.join(names)} = {text}")
        for value, given, name in zip(op.results, results, names, strict=True):
            self.texts[value] = given.named(name)

    def name(self, value: SSAValue) -> str:
        """The variable of a value."""
        group = self.variables.group(value)
        if not group.name:
            group.name = self.names.unused(self.stem(value))
        return group.name

    def stem(self, value: SSAValue) -> str:
        """What a variable is called, but for a number behind it: as in the user's source, if it has a name there."""
        hint = next((m.name_hint for m in self.variables.group(value).members if m.name_hint), None)
        return hint or self._stem(value)

    def _stem(self, value: SSAValue) -> str:
        owner = value.owner
        if isinstance(owner, Operation):
            if owner.name == "ttg.convert_layout" and self.texts.get(owner.operands[0]) is not None:
                text = self.texts[owner.operands[0]].text
                if text.isidentifier():
                    return text
            if owner.name == "arith.cmpi" or kinds.kind_of(value.type) == "i1":
                return "mask" if is_tensor(value.type) else "holds"
            if isinstance(value.type, MemDescType):
                data = value.type.data
                special = SPECIAL.get((kinds.kind_of(data.element), data.layout.named))
                if special is not None:
                    return special.stem
            return STEMS.get(owner.name, "t")
        return "carried"

    def whole(self, text: Text) -> Text:
        """A text that means the value wherever it stands, alone too: numbers and what is spread become tiles."""
        if text.number is not None:
            return self.tile_of_number(text)
        if text.spread:
            source = replace(text, spread=False, inner=None)
            if not text.inner:
                assert text.layout is not None
                layout = self.shared.layouts.text(text.layout)
                made = f"gl.full({list(text.shape)}, {text.text}, {kinds.name_of(text.kind)}, {layout})"
                return replace(source, text=made, binds=ATOM)
            return replace(source, text=f"{text.within(ATOM)}.broadcast_to({list(text.shape)})", binds=ATOM)
        return text

    def tile_of_number(self, text: Text) -> Text:
        """A number as a tile, or as a scalar of its kind."""
        kind = kinds.name_of(text.kind)
        if not text.shape:
            if text.kind in ("i32", "i1") and not isinstance(text.number, float):
                return text
            return replace(text, text=f"gl.full([], {text.text}, {kind})", binds=ATOM, number=None)
        assert text.layout is not None
        layout = self.shared.layouts.text(text.layout)
        filled = f"gl.zeros({list(text.shape)}, {kind}, {layout})" if is_zero(text.number) else (
            f"gl.full({list(text.shape)}, {text.text}, {kind}, {layout})")  # fmt: skip
        return replace(text, text=filled, binds=ATOM, number=None)

    def flush(self) -> None:
        """Assign all values that wait to variables."""
        self._flush_to(len(self._waiting))

    def _flush_to(self, count: int) -> None:
        gone, self._waiting = self._waiting[:count], self._waiting[count:]
        for value in gone:
            self.comment(self._made_by[value])
            self.assign(value, self.texts[value])

    def effect(self, op: Operation, text: str) -> None:
        """An operation that gives nothing."""
        self.flush()
        self.comment(op)
        self.statement(text)

    # -- layouts, kinds --------------------------------------------------------------------------------------------

    def layout(self, value: SSAValue) -> str:
        """The name of a tile's layout."""
        layout = layout_of(value)
        assert layout is not None, value
        return self.shared.layouts.text(layout)

    def in_layout(self, text: Text, layout: DistributedLayout | None) -> Text:
        """A tile under another name of its layout."""
        if layout is None or text.layout is None or text.layout == layout:
            return text
        if text.number is not None or (text.spread and not text.inner):
            return replace(text, layout=layout)
        shape = text.inner if text.inner is not None else text.shape
        is_name = layout.to_linear(shape) == text.layout.to_linear(shape)
        if text.spread and not is_name:
            text = self.whole(text)
        name = self.shared.layouts.text(layout)
        trivial = ", assert_trivial=True" if is_name else ""  # it has copies that the other has not in their place
        made = f"gl.convert_layout({text.text}, {name}{trivial})"
        return replace(text, text=made, binds=ATOM, layout=layout)

    def in_kind(self, text: Text, kind: str) -> Text:
        """An integer with or without a sign, as an operation wants it: the same bits."""
        if text.kind == kind or text.kind == "i1" or kind == "i1":
            return text
        if text.number is not None:
            number = text.number
            if kind.startswith("u") and number < 0:
                number = int(number) + (1 << kinds.bits_of(kind))
            return replace(text, kind=kind, text=literal(number), number=number)
        return replace(text, text=f"{text.within(ATOM)}.to({kinds.name_of(kind)})", binds=ATOM, kind=kind)

    def module(self, name: str, place: str) -> str:
        """A module of Gluon that the file imports."""
        self.shared.imports[name] = place
        return name


STEMS = {
    "tt.load": "value",
    "tt.addptr": "pointers",
    "ttg.local_alloc": "buffer",
    "ttg.memdesc_index": "part",
    "ttg.memdesc_trans": "turned",
    "ttg.memdesc_subslice": "part",
    "ttg.local_load": "value",
    "tt.make_range": "index",
    "tt.get_program_id": "program",
    "tt.reduce": "reduced",
    "tt.dot": "product",
    "arith.divsi": "quotient",
    "arith.remsi": "rest",
}
"""What a value without a name in the user's source is called, by the operation that makes it."""


def in_lines(head: str, items: Sequence[str], tail: str, indent: int = 0) -> list[str]:
    """A list between parentheses: in one line, or filling several where that is too long."""
    room = WIDTH + 20 - indent
    line = f"{head}{', '.join(items)}{tail}"
    if len(line) <= room:
        return [line]
    filled = textwrap.wrap(", ".join(items), room - 5, break_long_words=False, break_on_hyphens=False)
    return [head, *(f"    {text}" for text in filled[:-1]), f"    {filled[-1]},", tail.lstrip(",")]


def literal(number: Any) -> str:
    """A number as Python writes it."""
    if isinstance(number, bool):
        return str(number)
    if isinstance(number, float):
        return repr(number) if number == number and abs(number) != float("inf") else f'float("{number}")'
    return str(int(number))


def is_zero(number: Any) -> bool:
    """Whether a number is 0 (and not -0.0)."""
    return number == 0 and not str(number).startswith("-")


def shape_of_value(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tile, () of a scalar."""
    return tuple(shape_of(value.type)) if is_tensor(value.type) else ()


def layout_of(value: SSAValue) -> DistributedLayout | None:
    """The layout of a tile, by the name that it has in the IR."""
    encoding = encoding_of(value.type) if is_tensor(value.type) else None
    named = encoding.named if encoding is not None else None
    return named if isinstance(named, DistributedLayout) else None


def user_span(op: Operation, file: str) -> Span | None:
    """The place in the user's file that an operation came from; of code of a library, where that was called."""
    at: Operation | None = op
    while at is not None:
        found: Span | None = None
        loc: Attribute = at.location
        while True:
            if isinstance(loc, builtin.CallSiteLoc):
                callee = span_of_loc(loc.callee)
                if callee is not None and callee.file == file:
                    found = callee
                    break
                loc = loc.caller
                continue
            span = span_of_loc(loc)
            found = span if span is not None and (span.file == file or not file) else None
            break
        if found is not None:
            return found
        at = at.parent_op()
    return None


HINTS = {"tt.divisibility": "multiple_of", "tt.contiguity": "max_contiguous", "tt.constancy": "max_constancy"}


def hints_of(op: Operation) -> dict[str, list[int]]:
    """What the author has promised about a value."""
    hints: dict[str, list[int]] = {}
    for name, word in HINTS.items():
        attr = op.attributes.get(name)
        if isinstance(attr, DenseIntOrFPElementsAttr):
            hints[word] = [int(v) for v in attr.get_values()]
    return hints


def with_hints(text: Text, hints: dict[str, list[int]]) -> Text:
    """A text with what was promised about it."""
    for word, values in hints.items():
        shown: Any = values if len(values) > 1 else values[0]
        text = replace(text, text=f"gl.{word}({text.text}, {shown})", binds=ATOM)
    return text

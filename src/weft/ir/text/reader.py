"""Reads a module from MLIR's text: `parse_module`.

Operations in their own text go through their form (see `forms`), those with regions or successors through `special`,
and any operation may be in MLIR's generic form. A value may be used before it is defined, where control flow allows
it; a stand-in takes its place until then.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from typing import NoReturn

from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments

from ..attrs import segments, unit_attr
from ..locations import UNKNOWN_LOC, file_loc
from .conversions import conversion
from .elements import Form, Parts
from .examples import written
from .forms import CASTS, FORMS, OPERATIONS, SAME, property_names
from .tokens import ParseError, unescape
from .types import type_text
from .values import ValueReader

Special = Callable[["Reader", str], Operation]
SPECIAL: dict[str, Special] = {}
"""How the operations that hold regions, name blocks or begin with something unusual are read; see `special`."""

_NEWLINE = re.compile("\n")
BODY = "a body holds operations, `%r = tt.splat %x : ...` or `tt.store ...`, and labels, `^bb1:`; '}' ends it"


class _Shape:
    """The groups of operands and results of an operation's class, looked up once."""

    def __init__(self, cls: type[Operation]):
        definition = cls.get_irdl_definition()  # type: ignore[attr-defined]
        self.operands = [name for name, _ in definition.operands]
        self.results = [name for name, _ in definition.results]
        self.sized = any(isinstance(o, AttrSizedOperandSegments) for o in definition.options)


_shape = cache(_Shape)


class Reader(ValueReader):
    """A cursor that reads operations, blocks and regions."""

    __slots__ = ("_blocks", "_lines", "_log", "_pending", "_values")

    def __init__(self, text: str, filename: str):
        super().__init__(text, filename)
        self._values: dict[str, tuple[SSAValue, ...]] = {}
        self._log: list[tuple[str, tuple[SSAValue, ...] | None]] = []
        self._pending: dict[str, tuple[SSAValue, int]] = {}
        self._blocks: list[dict[str, tuple[Block, int | None]]] = []
        self._lines: list[int] = []

    # -- values ------------------------------------------------------------------------------------------------

    def value(self, name: str, type: Attribute, at: int) -> SSAValue:
        """The value that `name`, at token `at`, stands for; its type must be the one given."""
        base, _, number = name.partition("#")
        results = self._values.get(base)
        if results is None:
            return self._stand_in(name, type, at)
        index = int(number[:9]) if number else 0
        if index >= len(results):
            last = f"'{base}#{len(results) - 1}' is the last" if len(results) > 1 else f"write '{base}'"
            self.fail(f"'{base}' has {len(results)} results, there is no '#{number}'", at, last)
        value = results[index]
        if value.type is not type and value.type != type:
            self._wrong_type(name, value.type, type, at)
        return value

    def _stand_in(self, name: str, type: Attribute, at: int) -> SSAValue:
        pending = self._pending.get(name)
        if pending is None:
            pending = (Block(arg_types=(type,)).args[0], at)
            self._pending[name] = pending
        elif pending[0].type != type:
            first = f"line {self.line_of(pending[1])} has the other type: let both be that of the definition"
            self.fail(f"'{name}' is used as {type_text(pending[0].type)} and as {type_text(type)}", at, first)
        return pending[0]

    def _wrong_type(self, name: str, is_: Attribute, used: Attribute, at: int) -> NoReturn:
        """Complain of a value that is used as one of another type."""
        line, converter = self._defined_on(name), conversion(is_, used)
        place = f"line {line} defines it: " if line is not None and line != self.line_of(at) else ""
        way = (
            f"write its type here, or make another value of it with {converter}" if converter else "write its type here"
        )
        self.fail(f"'{name}' is of type {type_text(is_)}, used here as {type_text(used)}", at, f"{place}{way}")

    def _defined_on(self, name: str) -> int | None:
        """The line of the first `%x = ...`, `%x, %y = ...` or `%x: T`, as arguments are written, of a value."""
        base = name.partition("#")[0]
        for at in [i for i, text in enumerate(self.texts) if text == base]:
            after = self.texts[at + 1]
            argument = after == ":" and self.starts[at + 1] == self.starts[at] + len(base)
            if argument or after == "=" or (after in (":", ",") and self._begins_line(at)):
                return self.line_of(at)
        return None

    def _begins_line(self, at: int) -> bool:
        return at == 0 or self.line_of(at - 1) != self.line_of(at)

    def define(self, name: str, values: tuple[SSAValue, ...], at: int) -> None:
        """Give values a name, from here to the end of the region."""
        if name in self._values:
            other = f"line {self._defined_on(name)} defines it too"
            self.fail(f"'{name}' is defined twice", at, f"{other}: rename one, '{name}_1', and its uses")
        if "#" in name:
            self.fail(f"'{name}' cannot name a value", at, "name several results '%x:2 = ...', and use '%x#0', '%x#1'")
        self._log.append((name, self._values.get(name)))
        self._values[name] = values
        hint = name[1:]
        if not hint[0].isdigit() and "-" not in hint and hint.lstrip("_0123456789"):
            for value in values:
                value.name_hint = hint
        if self._pending:
            for i, value in enumerate(values):
                for key in (name, f"{name}#0") if i == 0 else (f"{name}#{i}",):
                    waiting = self._pending.pop(key, None)
                    if waiting is not None:
                        if waiting[0].type != value.type:
                            self._wrong_type(key, value.type, waiting[0].type, waiting[1])
                        waiting[0].replace_all_uses_with(value)

    def undefined(self) -> None:
        """Complain of values that were used and never defined."""
        if self._pending:
            name, (value, at) = min(self._pending.items(), key=lambda item: item[1][1])
            line, fitting = (
                self._defined_on(name),
                [n for n, v in self._values.items() if v and v[0].type == value.type],
            )
            fitting = [n for n in fitting if (self._defined_on(n) or 0) < self.line_of(at)]
            close = get_close_matches(name, fitting, 1) or get_close_matches(name, self._values, 1)
            hint = (
                f"did you mean '{close[0]}'?" if close else "define it before, or make it an argument of the function"
            )
            if line is not None:
                hint = f"line {line} defines it in another region or function: yield it from there, or pass it"
            elif fitting and not close:
                hint += f"; of its type {'are' if len(fitting) > 1 else 'is'} {', '.join(fitting[-3:])}"
            self.fail(f"'{name}' is not defined", at, hint)

    # -- blocks and regions ------------------------------------------------------------------------------------

    def block_named(self, label: str, at: int) -> Block:
        """The block of the current region with this label, which may come later."""
        if not self._blocks:
            self.fail("there is no block to go to here", at, "branches belong in the body of a function")
        labelled = self._blocks[-1].get(label)
        if labelled is None:
            labelled = (Block(), at)
            self._blocks[-1][label] = labelled
        return labelled[0]

    def successor(self) -> Block:
        """A block's label, which must be next."""
        at = self.at
        return self.block_named(self.need("b", ", a label such as ^bb1"), at)

    def region(
        self, entry: Sequence[tuple[str, int, Attribute, Attribute]] | None = None, isolated: bool = False
    ) -> Region:
        """A region in braces. `entry` gives the first block's arguments: names, tokens, types and locations."""
        self.expect("{")
        self.enter()
        outer = self._values, self._pending, self._log
        if isolated:
            self._values, self._pending, self._log = {}, {}, []
        mark = len(self._log)
        self._blocks.append({})
        blocks: list[Block] = []
        if entry is not None or self.kinds[self.at] != "b":
            block = Block(arg_types=[e[2] for e in entry or ()])
            for argument, (name, at, _, location) in zip(block.args, entry or (), strict=True):
                argument.location = location  # type: ignore[assignment]
                self.define(name, (argument,), at)
            self._operations(block)
            if entry is not None or block.first_op is not None or self.kinds[self.at] == "b":
                blocks.append(block)
        while self.kinds[self.at] == "b":
            blocks.append(self._labelled_block())
        self.expect("}", hint=BODY)
        for label, (_, used) in self._blocks.pop().items():
            if used is not None:
                others = [name for name in self._labels() if name != label]
                near = get_close_matches(label, others, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"begin a block with a line `{label}:` in this region"
                self.fail(f"there is no block '{label}'", used, hint)
        if isolated:
            self.undefined()
            self._values, self._pending, self._log = outer
        else:
            while len(self._log) > mark:
                name, before = self._log.pop()
                if before is None:
                    del self._values[name]
                else:
                    self._values[name] = before
        self.leave()
        return Region(blocks)

    def _labels(self) -> list[str]:
        """The labels that begin blocks somewhere in the text."""
        starts = [i for i, kind in enumerate(self.kinds) if kind == "b" and self._begins_line(i)]
        return [self.texts[i] for i in starts]

    def _labelled_block(self) -> Block:
        at = self.at
        label = self.need("b")
        pending = self._blocks[-1].get(label)
        if pending is not None and pending[1] is None:
            self.fail(f"block '{label}' is defined twice", at, f"rename one, '{label}_1', and the branches to it")
        block = Block() if pending is None else pending[0]
        self._blocks[-1][label] = (block, None)
        if self.accept("("):
            for name, where, type, location in self.arguments(")"):
                argument = block.insert_arg(type, len(block.args))
                argument.location = location  # type: ignore[assignment]
                self.define(name, (argument,), where)
        self.expect(":")
        self._operations(block)
        return block

    def arguments(self, close: str) -> list[tuple[str, int, Attribute, Attribute]]:
        """`%x: T loc(...), ...` up to and with the closing bracket."""
        arguments: list[tuple[str, int, Attribute, Attribute]] = []
        for at in self.items(close):
            name = self.need("v")
            self.expect(":")
            type = self.type()
            arguments.append((name, at, type, self.optional_location()))
        return arguments

    def _operations(self, block: Block) -> None:
        kinds, texts = self.kinds, self.texts
        while True:
            kind = kinds[self.at]
            if kind in "vis":
                block.add_op(self.operation())
            elif kind == "a" and texts[self.at + 1] == "=":
                self.at += 2
                self.attribute()
            else:
                return

    # -- operations --------------------------------------------------------------------------------------------

    def operation(self) -> Operation:
        """An operation, which must be next, with the names of its results."""
        results: list[tuple[str, int, int]] = []
        start = self.at
        if self.kinds[self.at] == "v":
            while True:
                at = self.at
                name = self.need("v", ", a result,")
                count = self._count() if self.accept(":") else 1
                results.append((name, count, at))
                if not self.accept(","):
                    break
            self.expect(
                "=", hint="what an operation yields is named before it, `%x = ...`, `%x, %y = ...` or `%x:2 = ...`"
            )
        at = self.at
        try:
            kind, name = self.kinds[at], self.texts[at]  # read here: a call more for each level of nesting is too deep
            op: Operation
            if kind == "s":
                op = self._generic()
            elif kind == "i":
                self.at += 1
                if name in SAME:
                    op = self._same(name, SAME[name])
                elif name in CASTS:
                    op = self._cast(name, CASTS[name])
                elif name in FORMS:
                    op = self._formed(name, FORMS[name], at)
                elif name in SPECIAL:
                    op = SPECIAL[name](self, name)
                else:
                    self.unknown(name, at)
            else:
                self.fail(f"expected an operation, found {self.found()}", hint=BODY)
        except ParseError as error:
            name = unescape(self.texts[at]) if self.kinds[at] == "s" else self.texts[at]
            example = written(name)
            if error.hint is None and example is not None:
                error.hint = f"{name} is written like this: {example}"
            raise
        op.location = self.optional_location() if self.texts[self.at] == "loc" else self._place(start)  # type: ignore
        if results:
            self._name_results(op, results, start)
        return op

    def _count(self) -> int:
        """How many results stand behind one name."""
        if self.kinds[self.at] != "n":
            self.fail(
                f"expected the number of results, found {self.found()}", hint="two results of one name are `%x:2 = ...`"
            )
        return self.integer()

    def _place(self, at: int) -> Attribute:
        """The location of a token: that of an operation whose text names none."""
        if not self._lines:
            self._lines = [match.end() for match in _NEWLINE.finditer(self.text)]
        start = self.starts[at]
        line = bisect_right(self._lines, start)
        begin = self._lines[line - 1] if line else 0
        return file_loc(self.filename, line + 1, start - begin)

    def _name_results(self, op: Operation, results: list[tuple[str, int, int]], start: int) -> None:
        values = op.results
        total = sum(count for _, count, _ in results)
        if total != len(values):
            names = (
                "begin the line with the operation"
                if not values
                else (f"name {len(values)} before the '=', {', '.join(f'%r{i}' for i in range(len(values)))}")
            )
            self.fail(f"{op.name} has {len(values)} results, {total} are named", start, names)
        first = 0
        for name, count, at in results:
            self.define(name, tuple(values[first : first + count]), at)
            first += count

    def unknown(self, name: str, at: int) -> NoReturn:
        """Complain of an operation that is not known, or not in its own text."""
        if name in OPERATIONS and self.kinds[at] != "s":
            self.fail(f"'{name}' is known here only in MLIR's generic form, \"{name}\"(...)", at)
        dialect = name.partition(".")[0]
        dialects = sorted({operation.partition(".")[0] for operation in OPERATIONS})
        close = get_close_matches(name, OPERATIONS, 1)
        hint = f"did you mean '{close[0]}'?" if close else None
        if hint is None and dialect in dialects:
            names = get_close_matches(name, [n for n in OPERATIONS if n.startswith(f"{dialect}.")], 4, 0.0)
            hint = f"{dialect} has {', '.join(names)}, ..."
        self.fail(f"unknown operation '{name}'", at, hint or f"operations are of the dialects {', '.join(dialects)}")

    def flags(self, properties: dict[str, Attribute]) -> None:
        """`overflow<nsw>`, `fastmath<fast>`, `exact`: any of them, or none."""
        text = self.texts[self.at]
        while text in ("overflow", "fastmath", "exact"):
            self.at += 1
            if text == "exact":
                properties["isExact"] = unit_attr()
            else:
                properties["overflowFlags" if text == "overflow" else text] = self._flag_set(text)
            text = self.texts[self.at]

    def _flag_set(self, kind: str) -> Attribute:
        cls: type[FastMathFlagsAttr] | type[IntegerOverflowAttr]
        cls = FastMathFlagsAttr if kind == "fastmath" else IntegerOverflowAttr
        by_word = {str(f.value): f for f in cls.enum_type}
        flags: list[object] = []
        self.expect("<")
        while True:
            at = self.at
            word = self.need("i", ", a flag,")
            if word in by_word:
                flags.append(by_word[word])
            elif word == cls.all_value:
                flags.extend(by_word.values())
            elif word != "none":
                self.fail(f"unknown flag '{word}', expected one of {', '.join(by_word)}", at)
            if not self.accept(","):
                break
        self.expect(">")
        return cls(flags)  # type: ignore[arg-type]

    def _same(self, name: str, count: int) -> Operation:
        names = [(self.need("v"), self.at - 1)]
        for _ in range(count - 1):
            self.expect(",")
            names.append((self.need("v"), self.at - 1))
        properties: dict[str, Attribute] = {}
        self.flags(properties)
        attributes = self.dictionary() if self.texts[self.at] == "{" else {}
        self.expect(":")
        type = self.type()
        operands = [self.value(n, type, at) for n, at in names]
        cls = OPERATIONS[name]
        self.sort_out(cls, attributes, properties)
        return cls.create(operands=operands, result_types=(type,), properties=properties, attributes=attributes)

    def _cast(self, name: str, word: str) -> Operation:
        operand, at = self.need("v"), self.at - 1
        properties: dict[str, Attribute] = {}
        if self.texts[self.at] in ("tonearesteven", "downward", "upward", "towardzero", "tonearestaway", "nneg"):
            self.fail(f"'{self.texts[self.at]}' is not supported on {name}", hint="tt.fp_to_fp takes a rounding")
        self.flags(properties)
        attributes = self.dictionary() if self.texts[self.at] == "{" else {}
        self.expect(":")
        source = self.type()
        self.expect(word.strip())
        target = self.type()
        cls = OPERATIONS[name]
        self.sort_out(cls, attributes, properties)
        value = self.value(operand, source, at)
        return cls.create(operands=(value,), result_types=(target,), properties=properties, attributes=attributes)

    def _formed(self, name: str, form: Form, at: int) -> Operation:
        parts = Parts()
        for piece in form.pieces:
            piece.read(self, parts)
        cls = OPERATIONS[name]
        for group, rule in form.infer.items():
            if group not in parts.types and (group in parts.operands or group not in _shape(cls).operands):
                parts.types[group] = rule(parts)
        return self.finish(cls, parts, at)

    def finish(self, cls: type[Operation], parts: Parts, at: int) -> Operation:
        """Make an operation of what was read; `at` is the token of its name."""
        shape = _shape(cls)
        operands: list[SSAValue] = []
        sizes: list[int] = []
        for group in shape.operands:
            names = parts.operands.get(group, ())
            types = parts.types.get(group, ())
            if len(names) != len(types):
                self.fail(f"{cls.name} has {len(names)} operands '{group}', but {len(types)} types for them", at)
            operands += [self.value(n, t, where) for (n, where), t in zip(names, types, strict=True)]
            sizes.append(len(names))
        result_types = [t for group in shape.results for t in parts.types.get(group, ())]
        properties = parts.properties
        self.sort_out(cls, parts.attributes, properties)
        if shape.sized:
            properties["operandSegmentSizes"] = segments(*sizes)
        return cls.create(
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=parts.attributes,
            regions=parts.regions,
        )

    def sort_out(
        self, cls: type[Operation], attributes: dict[str, Attribute], properties: dict[str, Attribute]
    ) -> None:
        """Move what belongs to the operation itself from `attributes` to `properties`."""
        if attributes:
            for key in attributes.keys() & property_names(cls):
                properties[key] = attributes.pop(key)

    def _generic(self) -> Operation:
        at = self.at
        name = self.attribute_string()
        cls = OPERATIONS.get(name)
        if cls is None:
            self.unknown(name, at)
        self.expect("(")
        names = [(self.need("v"), at) for at in self.items(")")]
        successors: list[Block] = []
        if self.accept("["):
            successors.append(self.successor())
            while self.accept(","):
                successors.append(self.successor())
            self.expect("]")
        properties: dict[str, Attribute] = {}
        if self.accept("<"):
            properties = self.dictionary()
            self.expect(">")
        regions: list[Region] = []
        isolated = name in ("tt.func", "builtin.module")
        if self.accept("("):
            regions.append(self.region(isolated=isolated))
            while self.accept(","):
                regions.append(self.region(isolated=isolated))
            self.expect(")")
        attributes = self.dictionary() if self.texts[self.at] == "{" else {}
        self.expect(":")
        where = self.at
        inputs, outputs = self.function_signature()
        if len(inputs) != len(names):
            self.fail(f"{name} has {len(names)} operands, but {len(inputs)} types for them", where)
        operands = [self.value(n, t, i) for (n, i), t in zip(names, inputs, strict=True)]
        self.sort_out(cls, attributes, properties)
        return cls.create(
            operands=operands,
            result_types=outputs,
            properties=properties,
            attributes=attributes,
            regions=regions,
            successors=successors,
        )

    def attribute_string(self) -> str:
        """The text of a string, which must be next."""
        return self.attribute().data  # type: ignore[attr-defined, no-any-return]


def _read(reader: Reader) -> Iterator[Operation]:
    """The operations of a file, at its outermost level."""
    while reader.kinds[reader.at] != "e":
        if reader.kinds[reader.at] == "a" and reader.texts[reader.at + 1] == "=":
            reader.at += 2
            reader.attribute()
        else:
            yield reader.operation()


def parse_module(text: str, filename: str = "<ttir>") -> ModuleOp:
    """Read a module: Triton's text, or MLIR's generic form.

    Only the text is judged here, and the types where it repeats them; `weft.ir.verify` judges what it means. Raises
    `CompilationError` with the place in the text.
    """
    reader = Reader(text, filename)
    try:
        ops = list(_read(reader))
    except RecursionError:  # few levels, read where many calls are active
        reader.fail(
            "nested too deep for what is left of Python's stack", hint="sys.setrecursionlimit(...) makes it larger"
        )
    reader.undefined()
    if len(ops) == 1 and isinstance(ops[0], ModuleOp):
        return ops[0]
    module = ModuleOp(ops)
    module.location = UNKNOWN_LOC
    return module

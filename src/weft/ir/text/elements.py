"""The pieces that an operation's text is made of, each read and written by one small class.

A form is a list of pieces; `tt.load` is

    [Value("ptr"), Maybe(", ", Value("mask")), Maybe(", ", Value("other")), HINTS, ATTRS, " : ", Type("ptr")]

A plain string is a mark: it is written as it stands, and read without its spaces. What a form leaves out of the text
(the type of a mask, say) its `infer` works out from what the text has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from xdsl.ir import Attribute, Operation, Region, SSAValue

from ..attrs import enum_attr, int_value, str_attr, unit_attr
from .spelling import quote, symbol_text
from .tokens import unescape
from .values import ValueReader

Rule = Callable[["Parts"], Sequence[Attribute]]
"""The types of a group, worked out from those that have been read."""

Infer = Mapping[str, Rule]
"""The groups whose types are not in the text, in an order in which they can be found."""


@dataclass
class Parts:
    """What has been read of one operation."""

    operands: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """For each group of operands: the names, and the token where each stands."""
    types: dict[str, Sequence[Attribute]] = field(default_factory=dict)
    """For each group of operands or results: the types."""
    properties: dict[str, Attribute] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)

    def type(self, group: str) -> Attribute:
        """The type of a group of one."""
        return self.types[group][0]


class Writing(Protocol):
    """What a piece may use to write itself."""

    def name(self, value: SSAValue) -> str:
        """The name of a value, `%x`."""
        ...

    def type(self, type: Attribute) -> str:
        """A type as text."""
        ...

    def signature(self, op: Operation) -> str:
        """The types of all operands and all results, `(T, T) -> T`."""
        ...

    def attributes(self, op: Operation) -> str:
        """The attributes of an operation in braces, after a space, without those that its form shows elsewhere."""
        ...


class Piece(Protocol):
    """A part of an operation's text."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        """Take the piece from the text."""
        ...

    def write(self, writing: Writing, op: Operation) -> str:
        """The piece as text."""
        ...

    def present(self, op: Operation) -> bool:
        """Is there anything to write?"""
        ...


def _group(op: Operation, name: str) -> Sequence[SSAValue]:
    group = getattr(op, name)
    if group is None:
        return ()
    return (group,) if isinstance(group, SSAValue) else group


class Mark:
    """Punctuation or words of the form itself."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = re.findall(r"->|\w+|[^\w\s]", text)

    def read(self, reader: ValueReader, parts: Parts) -> None:
        for token in self.tokens:
            reader.expect(token)

    def write(self, writing: Writing, op: Operation) -> str:
        return self.text

    def present(self, op: Operation) -> bool:
        return True


def _pieces(pieces: Sequence[Piece | str]) -> list[Piece]:
    return [Mark(p) if isinstance(p, str) else p for p in pieces]


class Value:
    """One operand, `%x`."""

    def __init__(self, group: str):
        self.group = group

    def read(self, reader: ValueReader, parts: Parts) -> None:
        parts.operands[self.group] = [(reader.need("v"), reader.at - 1)]

    def write(self, writing: Writing, op: Operation) -> str:
        return writing.name(_group(op, self.group)[0])

    def present(self, op: Operation) -> bool:
        return bool(_group(op, self.group))


class Values:
    """Any number of operands between commas, `%x, %y`."""

    def __init__(self, group: str):
        self.group = group

    def read(self, reader: ValueReader, parts: Parts) -> None:
        names: list[tuple[str, int]] = []
        if reader.kinds[reader.at] == "v":
            names.append((reader.need("v"), reader.at - 1))
            while reader.accept(","):
                names.append((reader.need("v"), reader.at - 1))
        parts.operands[self.group] = names

    def write(self, writing: Writing, op: Operation) -> str:
        return ", ".join(writing.name(v) for v in _group(op, self.group))

    def present(self, op: Operation) -> bool:
        return bool(_group(op, self.group))


class Type:
    """The type of one operand or result. `short` leaves out the dialect's name, as Triton does in places."""

    def __init__(self, group: str, short: str = ""):
        self.group = group
        self.short = short

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if self.short and reader.texts[reader.at] == "<":
            parts.types[self.group] = (reader.short_type(self.short),)
        else:
            parts.types[self.group] = (reader.type(),)

    def write(self, writing: Writing, op: Operation) -> str:
        text = writing.type(_group(op, self.group)[0].type)
        return text.removeprefix(self.short) if self.short else text

    def present(self, op: Operation) -> bool:
        return bool(_group(op, self.group))


class Types:
    """The types of a group of any size."""

    def __init__(self, group: str):
        self.group = group

    def read(self, reader: ValueReader, parts: Parts) -> None:
        parts.types[self.group] = reader.type_list()

    def write(self, writing: Writing, op: Operation) -> str:
        return ", ".join(writing.type(v.type) for v in _group(op, self.group))

    def present(self, op: Operation) -> bool:
        return bool(_group(op, self.group))


class Signature:
    """The types of all operands and all results, `(T, T) -> T`."""

    def __init__(self, operands: Sequence[str], results: Sequence[str]):
        self.operands = operands
        self.results = results

    def read(self, reader: ValueReader, parts: Parts) -> None:
        at = reader.at
        inputs, outputs = reader.function_signature()
        for group in self.operands:
            count = len(parts.operands.get(group, ()))
            parts.types[group], inputs = inputs[:count], inputs[count:]
            if len(parts.types[group]) != count:
                reader.fail("fewer types than operands", at)
        if inputs:
            reader.fail("more types than operands", at)
        if len(self.results) == 1:
            parts.types[self.results[0]] = outputs
        elif outputs:
            reader.fail("this operation has no results", at)

    def write(self, writing: Writing, op: Operation) -> str:
        return writing.signature(op)

    def present(self, op: Operation) -> bool:
        return True


class Maybe:
    """Pieces that may be absent: they are there if the mark before them is (or, after a mere space, if a value is)."""

    def __init__(self, mark: str, *pieces: Piece | str):
        self.mark = mark
        self.key = mark.strip()
        self.pieces = _pieces(pieces)

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if reader.accept(self.key) if self.key else reader.kinds[reader.at] == "v":
            for piece in self.pieces:
                piece.read(reader, parts)

    def write(self, writing: Writing, op: Operation) -> str:
        if not self.present(op):
            return ""
        return self.mark + "".join([p.write(writing, op) for p in self.pieces])

    def present(self, op: Operation) -> bool:
        return all(p.present(op) for p in self.pieces)


class Choice:
    """A property that is one of a few words; `default` is what its absence means."""

    def __init__(self, prop: str, choices: Mapping[str, IntEnum], default: IntEnum | None = None):
        self.prop = prop
        self.choices = choices
        self.default = default
        self.word = {int(v): k for k, v in choices.items()}

    def read(self, reader: ValueReader, parts: Parts) -> None:
        word = reader.texts[reader.at]
        if word not in self.choices:
            reader.fail(f"expected one of {', '.join(self.choices)}, found {reader.found()}")
        reader.at += 1
        parts.properties[self.prop] = enum_attr(self.choices[word])

    def write(self, writing: Writing, op: Operation) -> str:
        value = int_value(op.properties[self.prop])
        return self.word.get(value, str(value))

    def present(self, op: Operation) -> bool:
        attribute = op.properties.get(self.prop)
        return attribute is not None and (self.default is None or int_value(attribute) != self.default)


class Hints:
    """Choices in any order, each after its word, `cacheModifier = cg evictionPolicy = evict_last`."""

    def __init__(self, **hints: Choice):
        self.hints = hints

    def read(self, reader: ValueReader, parts: Parts) -> None:
        while reader.texts[reader.at] in self.hints:
            hint = self.hints[reader.texts[reader.at]]
            if hint.prop in parts.properties:
                reader.fail(f"'{reader.texts[reader.at]}' is given twice")
            reader.at += 1
            reader.expect("=")
            hint.read(reader, parts)

    def write(self, writing: Writing, op: Operation) -> str:
        return "".join(f" {word} = {h.write(writing, op)}" for word, h in self.hints.items() if h.present(op))

    def present(self, op: Operation) -> bool:
        return True


class Flag:
    """A property that is there or not, as a word of its own."""

    def __init__(self, prop: str, word: str):
        self.prop = prop
        self.word = word

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if reader.accept(self.word):
            parts.properties[self.prop] = unit_attr()

    def write(self, writing: Writing, op: Operation) -> str:
        return f" {self.word}" if self.prop in op.properties else ""

    def present(self, op: Operation) -> bool:
        return self.prop in op.properties


class Text:
    """A property that is a string."""

    def __init__(self, prop: str):
        self.prop = prop

    def read(self, reader: ValueReader, parts: Parts) -> None:
        parts.properties[self.prop] = str_attr(unescape(reader.need("s")))

    def write(self, writing: Writing, op: Operation) -> str:
        return quote(op.properties[self.prop].data)  # type: ignore[attr-defined]

    def present(self, op: Operation) -> bool:
        return self.prop in op.properties


class Named:
    """A property that is a reference to a function, `@f`."""

    def __init__(self, prop: str):
        self.prop = prop

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if reader.kinds[reader.at] != "y":
            reader.need("y")
        parts.properties[self.prop] = reader.attribute()

    def write(self, writing: Writing, op: Operation) -> str:
        return symbol_text(op.properties[self.prop].root_reference.data)  # type: ignore[attr-defined]

    def present(self, op: Operation) -> bool:
        return self.prop in op.properties


class Form:
    """The text of an operation after its name."""

    def __init__(
        self,
        pieces: Sequence[Piece | str],
        infer: Infer,
        hidden: frozenset[str] = frozenset(),
        defaults: Mapping[str, Attribute] | None = None,
    ):
        self.pieces = _pieces(pieces)
        self.infer = infer
        self.hidden = hidden
        """Properties that the pieces show, and that the attributes in braces leave out."""
        self.defaults = defaults or {}
        """Properties that are left out where they have this value."""


class Attributes:
    """The attributes in braces, if there are any."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if reader.texts[reader.at] == "{":
            parts.attributes.update(reader.dictionary())

    def write(self, writing: Writing, op: Operation) -> str:
        return writing.attributes(op)

    def present(self, op: Operation) -> bool:
        return True


def words(enum: type[IntEnum], **other: str) -> dict[str, IntEnum]:
    """An enumeration by the words that Triton writes: its names in lower case, but for the exceptions given."""
    return {other.get(member.name, member.name.lower()): member for member in enum}

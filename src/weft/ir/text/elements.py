"""The pieces that an operation's text is made of, each read and written by one small class; and forms, which list them.

A form is written as text with places to fill in. That of `tt.load` is

    %ptr?[, %mask]?[, %other]@hints{} : <ptr>

    %ptr  %offsets...                      an operand; any number of them, between commas
    <ptr>  <offsets...>  <base: !tt.ptr>   the type of one; of any number; of one, without the word that follows
    <a, b -> r>  <a, b>                    all types, as `(T, T) -> T`; those of the operands, as `T, T`
    @hints                                 properties, as `PROPERTIES` says
    {}                                     the attributes in braces
    ?[, %mask]                             what may be absent

and the rest stands as it is. What a form leaves out of the text (the type of a mask, say) its `infer` works out from
what the text has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Protocol

from xdsl.ir import Attribute, Operation, Region, SSAValue

from ..attrs import enum_attr, int_value, str_attr, unit_attr
from .spelling import quote, symbol_text
from .tokens import unescape
from .values import ValueReader

Rule = Callable[["Parts"], Sequence[Attribute]]
"""The types of a group, worked out from those that have been read."""


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


class Piece:
    """A part of an operation's text."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        """Take the piece from the text."""
        raise NotImplementedError

    def write(self, writing: Writing, op: Operation) -> str:
        """The piece as text."""
        raise NotImplementedError

    def present(self, op: Operation) -> bool:
        """Is there anything to write?"""
        return True

    def shown(self) -> set[str]:
        """The properties that it shows."""
        return set()


def _shown(pieces: Sequence[Piece]) -> set[str]:
    return {prop for piece in pieces for prop in piece.shown()}


def _group(op: Operation, name: str) -> Sequence[SSAValue]:
    group = getattr(op, name)
    if group is None:
        return ()
    return (group,) if isinstance(group, SSAValue) else group


class Mark(Piece):
    """Punctuation or words of the form itself."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = re.findall(r"->|\w+|[^\w\s]", text)

    def read(self, reader: ValueReader, parts: Parts) -> None:
        for token in self.tokens:
            reader.expect(token)

    def write(self, writing: Writing, op: Operation) -> str:
        return self.text


class _Group(Piece):
    """What belongs to a group of operands or results."""

    def __init__(self, group: str):
        self.group = group

    def present(self, op: Operation) -> bool:
        return bool(_group(op, self.group))


class Property(Piece):
    """What shows one property."""

    def __init__(self, prop: str):
        self.prop = prop

    def present(self, op: Operation) -> bool:
        return self.prop in op.properties

    def shown(self) -> set[str]:
        return {self.prop}


class Value(_Group):
    """One operand, `%x`."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        parts.operands[self.group] = [(reader.need("v"), reader.at - 1)]

    def write(self, writing: Writing, op: Operation) -> str:
        return writing.name(_group(op, self.group)[0])


class Values(_Group):
    """Any number of operands between commas, `%x, %y`."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        names: list[tuple[str, int]] = []
        if reader.kinds[reader.at] == "v":
            names.append((reader.need("v"), reader.at - 1))
            while reader.accept(","):
                names.append((reader.need("v"), reader.at - 1))
        parts.operands[self.group] = names

    def write(self, writing: Writing, op: Operation) -> str:
        return ", ".join(writing.name(v) for v in _group(op, self.group))


class Type(_Group):
    """The type of one operand or result. `short` leaves out the dialect's name, as Triton does in places."""

    def __init__(self, group: str, short: str = ""):
        super().__init__(group)
        self.short = short

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if self.short and reader.texts[reader.at] == "<":
            parts.types[self.group] = (reader.short_type(self.short),)
        else:
            parts.types[self.group] = (reader.type(),)

    def write(self, writing: Writing, op: Operation) -> str:
        text = writing.type(_group(op, self.group)[0].type)
        return text.removeprefix(self.short) if self.short else text


class Types(_Group):
    """The types of a group of any size."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        parts.types[self.group] = reader.type_list()

    def write(self, writing: Writing, op: Operation) -> str:
        return ", ".join(writing.type(v.type) for v in _group(op, self.group))


class Signature(Piece):
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


class AllTypes(Piece):
    """The types of all operands in the order of the operation, `T, T, T`."""

    def __init__(self, groups: Sequence[str]):
        self.groups = groups

    def read(self, reader: ValueReader, parts: Parts) -> None:
        at = reader.at
        types = reader.type_list()
        if len(types) != len(self.groups):
            reader.fail(f"{len(self.groups)} operands, but {len(types)} types for them", at)
        for group, type in zip(self.groups, types, strict=True):
            parts.types[group] = (type,)

    def write(self, writing: Writing, op: Operation) -> str:
        return ", ".join(writing.type(v.type) for v in op.operands)


class Maybe(Piece):
    """Pieces that may be absent: they are there if the mark before them is (or, after a mere space, if a value is)."""

    def __init__(self, mark: str, pieces: Sequence[Piece]):
        self.mark = mark
        self.key = mark.strip()
        self.pieces = pieces

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

    def shown(self) -> set[str]:
        return _shown(self.pieces)


class Choice(Property):
    """A property that is one of a few words; `default` is what its absence means."""

    def __init__(self, prop: str, choices: Mapping[str, IntEnum], default: IntEnum | None = None):
        super().__init__(prop)
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


class Hints(Piece):
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

    def shown(self) -> set[str]:
        return _shown([*self.hints.values()])


class Flag(Property):
    """A property that is there or not, as a word of its own."""

    def __init__(self, prop: str, word: str):
        super().__init__(prop)
        self.word = word

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if reader.accept(self.word):
            parts.properties[self.prop] = unit_attr()

    def write(self, writing: Writing, op: Operation) -> str:
        return f" {self.word}" if self.prop in op.properties else ""


class Text(Property):
    """A property that is a string."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        parts.properties[self.prop] = str_attr(unescape(reader.need("s")))

    def write(self, writing: Writing, op: Operation) -> str:
        return quote(op.properties[self.prop].data)  # type: ignore[attr-defined]


class Named(Property):
    """A property that is a reference to a function, `@f`."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if reader.kinds[reader.at] != "y":
            reader.need("y")
        parts.properties[self.prop] = reader.attribute()

    def write(self, writing: Writing, op: Operation) -> str:
        return symbol_text(op.properties[self.prop].root_reference.data)  # type: ignore[attr-defined]


class Attributes(Piece):
    """The attributes in braces, if there are any."""

    def read(self, reader: ValueReader, parts: Parts) -> None:
        if reader.texts[reader.at] == "{":
            parts.attributes.update(reader.dictionary())

    def write(self, writing: Writing, op: Operation) -> str:
        return writing.attributes(op)


PROPERTIES: dict[str, Piece] = {}
"""How properties are shown, by the words that stand for them in forms."""

_PLACE = re.compile(
    r"%(?P<value>\w+)(?P<several>\.\.\.)?|<(?P<types>(?:->|[^<>])*)>|@(?P<property>\w+)|(?P<attributes>{})"
    r"|\?\[(?P<mark>\s*(?:->|\w+|[^\w\s%])?\s*)(?P<maybe>[^\]]*)\]"
)


def _pieces(text: str) -> list[Piece]:
    """The pieces of a form.

    >>> [type(piece).__name__ for piece in _pieces("%ptr[%at...]?[, %mask]{} : <ptr>, <at...> -> <ptr, mask -> r>")]
    ['Value', 'Mark', 'Values', 'Mark', 'Maybe', 'Attributes', 'Mark', 'Type', 'Mark', 'Types', 'Mark', 'Signature']
    """
    pieces: list[Piece] = []
    at = 0
    for place in _PLACE.finditer(text):
        pieces += [Mark(text[at : place.start()])] if place.start() > at else []
        pieces.append(_piece(place))
        at = place.end()
    return [*pieces, Mark(text[at:])] if text[at:] else pieces


def _piece(place: re.Match[str]) -> Piece:
    match place.lastgroup:
        case "value":
            return Value(place["value"])
        case "several":
            return Values(place["value"])
        case "property":
            return PROPERTIES[place["property"]]
        case "attributes":
            return Attributes()
        case "maybe":
            return Maybe(place["mark"], _pieces(place["maybe"]))
    operands, arrow, results = place["types"].partition("->")
    groups = operands.replace(",", " ").split()
    if arrow:
        return Signature(groups, results.split())
    if len(groups) > 1 and not groups[0].endswith(":"):
        return AllTypes(groups)
    return Types(groups[0][:-3]) if groups[0].endswith("...") else Type(groups[0].rstrip(":"), *groups[1:])


class Form:
    """The text of an operation after its name; `infer` has the rules for types that it leaves out."""

    def __init__(self, text: str, hidden: str = "", defaults: Mapping[str, Attribute] | None = None, **infer: Rule):
        self.text = text
        self.infer = infer
        self.defaults = defaults or {}
        """Properties that are left out where they have this value."""
        self._hidden = hidden

    @cached_property
    def pieces(self) -> Sequence[Piece]:
        """Its pieces, in their order."""
        return _pieces(self.text)

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Properties that the attributes in braces leave out: those that the pieces show, and others."""
        return frozenset({*self._hidden.split(), "operandSegmentSizes"} | _shown(self.pieces))


def words(enum: type[IntEnum], **other: str) -> dict[str, IntEnum]:
    """An enumeration by the words that Triton writes: its names in lower case, but for the exceptions given."""
    return {other.get(member.name, member.name.lower()): member for member in enum}

"""Types and aliases read from text.

    tensor<64xf32>   !tt.ptr<f16, 1>   (i32, i1) -> f32   !ttg.memdesc<...#layout...>   #alias   !alias

`#name = ...` may stand after its uses, as Triton's locations do: the reader finds all of them first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches

from xdsl.ir import Attribute

from ..attrs import unit_attr
from ..types import function_type
from .tokens import Cursor, unescape
from .types import TYPES, BadType, read_type, type_text

_LONG = frozenset(("tensor", "!ttg.memdesc", "!tt.tensordesc", "!ttng.tensordesc_im2col", "!tt.ptr"))
DICTIONARY = 'a dictionary is {name = attribute, "a.name" = attribute, flag}'


class TypeReader(Cursor):
    """A cursor that reads types; what a type or an alias names may be an attribute, which `ValueReader` reads."""

    __slots__ = ("_aliases", "_laid", "_open", "_read")

    def __init__(self, text: str, filename: str):
        super().__init__(text, filename)
        # `#name = ...` may stand after its uses, as Triton's locations do.
        kinds, texts = self.kinds, self.texts
        self._aliases: dict[str, int] = {}
        for i in range(len(kinds) - 1):
            if kinds[i] == "a" and texts[i + 1] == "=":
                if texts[i] in self._aliases:
                    first = self.line_of(self._aliases[texts[i]] - 2)
                    self.fail(
                        f"'{texts[i]}' is defined twice", i, f"line {first} defines it too: rename one, and its uses"
                    )
                self._aliases[texts[i]] = i + 2
        self._read: dict[str, Attribute] = {}
        self._open: set[str] = set()
        self._laid: dict[str, Attribute] = {}

    # -- aliases -----------------------------------------------------------------------------------------------

    def alias(self, name: str) -> Attribute:
        """What `#name` stands for."""
        attribute = self._read.get(name)
        if attribute is not None:
            return attribute
        place = self._aliases.get(name)
        if place is None:
            self.at -= 1
            close = get_close_matches(name, self._aliases, 1)
            self.fail(
                f"'{name}' is not defined",
                hint=f"did you mean '{close[0]}'?"
                if close
                else f"define it on a line of its own, {name} = ..., "
                + ("or write loc(unknown)" if name.startswith("#loc") else "or write out here what it stands for"),
            )
        if name in self._open:
            self.fail(f"'{name}' is defined by itself", place - 2, "write out what it stands for in one of the aliases")
        self._open.add(name)
        back, self.at = self.at, place
        self.enter()
        value = self.attribute()
        self.leave()
        self.at = back
        self._open.discard(name)
        self._read[name] = value
        return value

    def alias_at_hand(self, name: str) -> Attribute:
        """What `#name` stands for, where it stands in the text of the current token."""
        self.at += 1
        attribute = self.alias(name)
        self.at -= 1
        return attribute

    # -- types -------------------------------------------------------------------------------------------------

    def type(self, where: str = "") -> Attribute:
        """A type, which must be next."""
        type = self.optional_type()
        if type is None:
            self.fail(f"expected a type{where}, found {self.found()}", hint=TYPES)
        return type

    def optional_type(self) -> Attribute | None:
        """A type, if one is next."""
        kind = self.kinds[self.at]
        text = self.texts[self.at]
        if text in _LONG and self.texts[self.at + 1] == "<" and EXTENSIONS.laid_type is not None:
            return self._long_type(text)
        if kind in "ti":
            if kind == "i" and text in ("tensor", "vector", "memref", "tuple", "complex"):
                self.fail(f"the type that begins with '{text}' is not one of tile IR", hint=TYPES)
            try:
                type = (
                    self._laid_type(text)
                    if kind == "t" and ("#" in text or text.startswith("!ttg."))
                    else read_type(text)
                )
            except BadType as error:
                if kind == "i" and not (text[:1] in "if" and text[1:].isdigit()):
                    return None
                self.fail(str(error), hint=error.hint)
            self.at += 1
            return type
        if kind == "a" and text.startswith("!"):
            if text in self._aliases:
                self.at += 1
                return self.alias(text)
            if text in EXTENSIONS.types:
                self.at += 1
                return EXTENSIONS.types[text]
            self.fail(f"unknown type '{text}'", hint=TYPES)
        if text == "(" and kind == "p":
            self.enter()
            inputs, outputs = self.function_signature()
            self.leave()
            return function_type(tuple(inputs), tuple(outputs))
        return None

    def _laid_type(self, text: str) -> Attribute:
        """A type that names a layout; each text is read once."""
        type = self._laid.get(text)
        if type is None:
            if EXTENSIONS.laid_type is None:
                raise BadType(
                    "an encoding belongs to Triton's GPU dialects, not to tile IR; weft.ir.gpu reads it",
                    "import weft.ir.gpu first",
                )
            type = self._laid[text] = EXTENSIONS.laid_type(self, text)
        return type

    def source_in_brackets(self) -> str:
        """The text from '<' up to and with its '>', which must be next."""
        start = self.starts[self.at]
        self.expect("<")
        depth = 1
        while depth:
            kind, text = self.kinds[self.at], self.texts[self.at]
            if kind == "e":
                self.fail("unclosed '<'", hint="add the '>' that ends the type or the attribute")
            depth += (text == "<") - (text == ">") if kind == "p" else 0
            self.at += 1
        return self.text[start : self.starts[self.at - 1] + 1]

    def _long_type(self, prefix: str) -> Attribute:
        """A type that is no single token: one on several lines, or in which layouts nest deep."""
        at = self.at
        self.at += 1
        text = prefix + " ".join(self.source_in_brackets().split())
        return self._typed(self._laid_type, text, at)

    def _typed(self, read: Callable[[str], Attribute], text: str, at: int) -> Attribute:
        """The type of a text that begins at a token."""
        try:
            return read(text)
        except BadType as error:
            self.fail(str(error), at, error.hint)

    def short_type(self, prefix: str) -> Attribute:
        """A type in brackets without its dialect's name, `<f16>`; `prefix` is what was left out."""
        at = self.at
        if prefix == "!ttg.memdesc" or "#" in self.texts[at + 1]:
            return self._typed(self._laid_type, prefix + self.source_in_brackets(), at)
        self.expect("<")
        inner = self.type()
        space = ""
        if self.accept(","):
            space = f", {self.integer(', an address space,')}"
        self.expect(">")
        return self._typed(read_type, f"{prefix}<{type_text(inner)}{space}>", at)

    def type_list(self) -> list[Attribute]:
        """Types between commas, at least one."""
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types

    def function_signature(self) -> tuple[list[Attribute], list[Attribute]]:
        """`(T, T) -> T` or `(T) -> (T, T)`: the inputs and the outputs."""
        self.expect("(")
        inputs = [] if self.texts[self.at] == ")" else self.type_list()
        self.expect(")")
        self.expect("->")
        return inputs, self.result_types()

    def result_types(self) -> list[Attribute]:
        """A type alone, or types in brackets."""
        if self.accept("("):
            outputs = [] if self.texts[self.at] == ")" else self.type_list()
            self.expect(")")
            return outputs
        return [self.type()]

    def attribute(self, wanted: Attribute | None = None) -> Attribute:
        """An attribute, which must be next."""
        raise NotImplementedError

    def dictionary(self) -> dict[str, Attribute]:
        """`{name = attribute, name}`, which must be next; a bare name is `unit`."""
        self.expect("{")
        self.enter()
        entries: dict[str, Attribute] = {}
        for _ in self.items("}"):
            kind, text = self.kinds[self.at], self.texts[self.at]
            if kind not in "ist":
                self.fail(f"expected the name of an attribute, found {self.found()}", hint=DICTIONARY)
            name = unescape(text) if kind == "s" else text
            if name in entries:
                self.fail(f"attribute '{name}' is given twice", hint="keep one of them")
            self.at += 1
            entries[name] = self.attribute() if self.accept("=") else unit_attr()
        self.leave()
        return entries


@dataclass
class Extensions:
    """What other dialects add to the reader: `weft.ir.gpu` fills it in when it is imported."""

    laid_type: Callable[[TypeReader, str], Attribute] | None = None
    """Reads the text of a type that names a layout, or of a kind of its own; BadType where it is none."""
    types: dict[str, Attribute] = field(default_factory=dict)
    """Types that are one word."""
    attributes: dict[str, Callable[[TypeReader, str], Attribute]] = field(default_factory=dict)
    """Reads what follows the name of an attribute."""


EXTENSIONS = Extensions()

"""Types, attributes and locations read from text; `spelling` writes them.

    16 : i32   1.5 : f32   true   "text"   [..]   {..}   array<i32: 1, 0>   dense<0.0> : tensor<8xf32>   @symbol
    loc("k.py":3:4)   loc("x"(#loc1))   loc(callsite(#loc1 at #loc2))   #alias   #llvm.loop_annotation<...>

An attribute of a dialect that is not known here is kept as its text (`OpaqueAttr`).
"""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.ir import Attribute

from ..attrs import unit_attr
from ..locations import UNKNOWN_LOC, call_site_loc, file_loc, name_loc
from ..types import f64, i1, i64
from .constant_reader import ConstantReader
from .spelling import OpaqueAttr, attr_text
from .tokens import MAX_DEPTH, unescape
from .type_reader import EXTENSIONS

LAST_PLACE = (1 << 32) - 1
"""The last line, and the last column, that a place can have; as in MLIR."""

# What may stand somewhere, for hints.
ATTRIBUTES = (
    'attributes are 16 : i32, 0.5 : f32, true, "text", [1, 2], {a = 1 : i32}, array<i32: 1, 0>, '
    "dense<0.0> : tensor<64xf32>, @function, #alias, or a type"
)
LOCATIONS = (
    'places are loc(unknown), loc("k.py":3:5), loc("x"(#loc1)), loc(callsite(#loc1 at #loc2)), loc(fused[#loc1, #loc2])'
)


class ValueReader(ConstantReader):
    """A cursor that reads types, attributes and locations."""

    __slots__ = ()

    # -- attributes --------------------------------------------------------------------------------------------

    def attribute(self, wanted: Attribute | None = None) -> Attribute:
        """An attribute, which must be next; `wanted` is the type of a number that does not say its own."""
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == "n":
            return self._number(wanted)
        if kind == "s":
            self.at += 1
            return builtin.StringAttr(unescape(text))
        if kind == "y":
            return self._symbol()
        if kind == "a" and text.startswith("#"):
            self.at += 1
            if text in EXTENSIONS.attributes and text not in self._aliases:
                return EXTENSIONS.attributes[text](self, text)
            return self._opaque(text) if "." in text and text not in self._aliases else self.alias(text)
        if kind == "i":
            if text in ("true", "false"):
                self.at += 1
                return builtin.IntegerAttr(int(text == "true"), i1)
            if text == "unit":
                self.at += 1
                return unit_attr()
            if text == "dense":
                return self._dense()
            if text == "array":
                return self._array()
            if text == "loc":
                return self.location()
        if text == "[":
            self.at += 1
            return builtin.ArrayAttr(self._items("]"))
        if text == "{":
            return builtin.DictionaryAttr(self.dictionary())
        attribute = self.optional_type()
        if attribute is None:
            self.fail(f"expected an attribute, found {self.found()}", hint=ATTRIBUTES)
        return attribute

    def _items(self, close: str) -> list[Attribute]:
        self.enter()
        items = [self.attribute() for _ in self.items(close)]
        self.leave()
        return items

    def _number(self, wanted: Attribute | None) -> Attribute:
        at = self.at
        text = self.need("n")
        if self.accept(":"):
            wanted = self.type()
        if wanted is None:
            wanted = f64 if "." in text else i64
        return self._number_of(text, wanted, at)

    def _symbol(self) -> builtin.SymbolRefAttr:
        names = [self.symbol()]
        while self.texts[self.at] == "::":
            self.at += 1
            names.append(self.symbol())
        return builtin.SymbolRefAttr(names[0], names[1:])

    def symbol(self) -> str:
        """The name of `@name` or `@"name"`, which must be next."""
        text = self.need("y", ", the name of a function")[1:]
        return unescape(text) if text.startswith('"') else text

    def _opaque(self, name: str) -> Attribute:
        return OpaqueAttr(name + (self._balanced() if self.texts[self.at] == "<" else ""))

    def _balanced(self) -> str:
        """The text between brackets, with aliases replaced by what they stand for."""
        closing = {"<": ">", "(": ")", "[": "]", "{": "}"}
        stack: list[str] = []
        parts: list[str] = []
        while True:
            kind, text = self.kinds[self.at], self.texts[self.at]
            if kind == "e":
                self.fail("unclosed '<'", hint="add the '>' that ends the type or the attribute")
            self.at += 1
            if kind == "a" and text in self._aliases:
                parts.append(attr_text(self.alias(text)))
            else:
                parts.append(text)
            if text in closing and kind == "p":
                stack.append(closing[text])
                if len(stack) > MAX_DEPTH:
                    self.fail(f"nested too deep: more than {MAX_DEPTH} levels")
            elif stack and text == stack[-1]:
                stack.pop()
                if not stack:
                    break
            spaced = kind in "ins" and self.kinds[self.at] in "ins"
            parts.append(" " if text in ("=", ",", ":") or self.texts[self.at] == "=" or spaced else "")
        return "".join(parts)

    # -- locations ---------------------------------------------------------------------------------------------

    def optional_location(self) -> Attribute:
        """`loc(...)` if it is next, otherwise the unknown location."""
        if self.texts[self.at] != "loc" or self.texts[self.at + 1] != "(":
            return UNKNOWN_LOC
        name = self.texts[self.at + 2]
        location = self._read.get(name)
        if location is not None and self.texts[self.at + 3] == ")":
            self.at += 4
            return location
        return self.location()

    def location(self) -> Attribute:
        """`loc(...)`, which must be next."""
        self.expect("loc", hint=LOCATIONS)
        self.expect("(", hint=LOCATIONS)
        location = self._location()
        self.expect(")", hint=LOCATIONS)
        return location

    def _location(self) -> Attribute:
        kind, text = self.kinds[self.at], self.texts[self.at]
        at = self.at
        self.enter()
        self.at += 1
        location: Attribute
        if kind == "a":
            location = self.alias(text)
        elif kind == "s":
            location = self._named_location(unescape(text))
        elif text == "unknown":
            location = UNKNOWN_LOC
        elif text == "callsite":
            self.expect("(", hint=LOCATIONS)
            callee = self._location()
            self.expect("at", hint=LOCATIONS)
            location = call_site_loc(callee, self._location())
            self.expect(")", hint=LOCATIONS)
        elif text == "fused":
            location = self._fused_location()
        elif text == "loc":
            self.at -= 1
            location = self.location()
        else:
            self.fail(f"expected a location, found '{text[:60]}'", at, LOCATIONS)
        if not isinstance(
            location,
            builtin.FileLineColLoc | builtin.NameLoc | builtin.CallSiteLoc | builtin.FusedLoc | type(UNKNOWN_LOC),
        ):
            self.fail(f"'{text}' is not a location", at, LOCATIONS)
        self.leave()
        return location

    def _named_location(self, name: str) -> Attribute:
        if self.accept(":"):
            line = self._counted("line")
            self.expect(":", hint=LOCATIONS)
            column = self._counted("column")
            if self.accept("to"):  # a range: its end is not kept
                if self.kinds[self.at] == "n":
                    self.at += 1
                self.expect(":", hint=LOCATIONS)
                self.integer(" of a column")
            return file_loc(name, line, column)
        if self.accept("("):
            inner = self._location()
            self.expect(")", hint=LOCATIONS)
            return name_loc(name, inner)
        return name_loc(name)

    def _counted(self, unit: str) -> int:
        """The number of a line or a column."""
        if self.kinds[self.at] != "n":
            self.fail(f"expected the number of a {unit}, found {self.found()}", hint=LOCATIONS)
        number = self.integer(f" of a {unit}")
        if not 0 <= number <= LAST_PLACE:
            wrong = f"the number of a {unit} is from 0 to {LAST_PLACE}, not {number}"
            self.fail(wrong, self.at - 1, "where the place is not known, write loc(unknown)")
        return number

    def _fused_location(self) -> Attribute:
        metadata: Attribute = builtin.NoneAttr()
        if self.accept("<"):
            metadata = self.attribute()
            self.expect(">")
        self.expect("[", hint=LOCATIONS)
        parts = [self._location() for _ in self.items("]", LOCATIONS)]
        return builtin.FusedLoc(parts, metadata)  # type: ignore[arg-type]

"""Types, attributes and locations read from text; `spelling` writes them.

    16 : i32   1.5 : f32   true   "text"   [..]   {..}   array<i32: 1, 0>   dense<0.0> : tensor<8xf32>   @symbol
    loc("k.py":3:4)   loc("x"(#loc1))   loc(callsite(#loc1 at #loc2))   #alias   #llvm.loop_annotation<...>

An attribute of a dialect that is not known here is kept as its text (`OpaqueAttr`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    CallSiteLoc,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    FusedLoc,
    IndexType,
    IntegerAttr,
    IntegerType,
    NameLoc,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute

from ..attrs import splat_attr, unit_attr
from ..locations import UNKNOWN, call_site_loc, file_loc, name_loc
from ..types import f64, function_type, i1, i64, is_float, is_tensor
from .spelling import OpaqueAttr, attr_text
from .tokens import MAX_DEPTH, Cursor, unescape
from .types import TYPES, BadType, read_type, type_text

__all__ = ["EXTENSIONS", "ValueReader"]

_LONG = frozenset(("tensor", "!ttg.memdesc", "!tt.tensordesc", "!ttng.tensordesc_im2col", "!tt.ptr"))


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
DENSE = "a tensor of constants is dense<0.0> : tensor<64xf32>, or dense<[1, 2]> : tensor<2xi32>"
DICTIONARY = 'a dictionary is {name = attribute, "a.name" = attribute, flag}'


class ValueReader(Cursor):
    """A cursor that reads types, attributes and locations."""

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
        try:
            return self._laid_type(text)
        except BadType as error:
            self.fail(str(error), at, error.hint)

    def short_type(self, prefix: str) -> Attribute:
        """A type in brackets without its dialect's name, `<f16>`; `prefix` is what was left out."""
        at = self.at
        if prefix == "!ttg.memdesc" or "#" in self.texts[at + 1]:
            text = prefix + self.source_in_brackets()
            try:
                return self._laid_type(text)
            except BadType as error:
                self.fail(str(error), at, error.hint)
        self.expect("<")
        inner = self.type()
        space = ""
        if self.accept(","):
            space = f", {self.integer(', an address space,')}"
        self.expect(">")
        try:
            return read_type(f"{prefix}<{type_text(inner)}{space}>")
        except BadType as error:
            self.fail(str(error), at, error.hint)

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

    # -- attributes --------------------------------------------------------------------------------------------

    def attribute(self, wanted: Attribute | None = None) -> Attribute:
        """An attribute, which must be next; `wanted` is the type of a number that does not say its own."""
        kind, text = self.kinds[self.at], self.texts[self.at]
        if kind == "n":
            return self._number(wanted)
        if kind == "s":
            self.at += 1
            return StringAttr(unescape(text))
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
                return IntegerAttr(int(text == "true"), i1)
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
            return ArrayAttr(self._items("]"))
        if text == "{":
            return DictionaryAttr(self.dictionary())
        attribute = self.optional_type()
        if attribute is None:
            self.fail(f"expected an attribute, found {self.found()}", hint=ATTRIBUTES)
        return attribute

    def dictionary(self) -> dict[str, Attribute]:
        """`{name = attribute, name}`, which must be next; a bare name is `unit`."""
        self.expect("{")
        self.enter()
        entries: dict[str, Attribute] = {}
        while self.texts[self.at] != "}":
            kind, text = self.kinds[self.at], self.texts[self.at]
            if kind not in "ist":
                self.fail(f"expected the name of an attribute, found {self.found()}", hint=DICTIONARY)
            name = unescape(text) if kind == "s" else text
            if name in entries:
                self.fail(f"attribute '{name}' is given twice", hint="keep one of them")
            self.at += 1
            entries[name] = self.attribute() if self.accept("=") else unit_attr()
            if not self.accept(","):
                break
        self.expect("}")
        self.leave()
        return entries

    def _items(self, close: str) -> list[Attribute]:
        self.enter()
        items: list[Attribute] = []
        while self.texts[self.at] != close:
            items.append(self.attribute())
            if not self.accept(","):
                break
        self.expect(close)
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

    def _number_of(self, text: str, type: Attribute, at: int) -> Attribute:
        if isinstance(type, IntegerType | IndexType):
            value = self._int_of(text, type, at)
            return IntegerAttr(value, type)
        if not is_float(type) or is_tensor(type):
            self.fail(
                f"{type_text(type)} is not the type of a number",
                at,
                "write 1 : i32, 0.5 : f32 or dense<0> : tensor<64xi32>",
            )
        return FloatAttr(self._float_of(text, type, at), type)  # type: ignore

    def _int_of(self, text: str, type: Attribute, at: int) -> int:
        if "." in text or len(text) > 40:
            self.fail(
                f"expected an integer, found '{text[:40]}'", at, f"floats have types of floats, {text[:40]} : f32"
            )
        value = int(text, 16 if "0x" in text else 10)
        width = 64 if isinstance(type, IndexType) else type.width.data  # type: ignore[attr-defined]
        if not -(1 << max(width - 1, 0)) <= value < 1 << width:
            low, high = -(1 << max(width - 1, 0)), (1 << width) - 1
            wider = "; use a wider type" if width < 64 else ""
            holds = f"{type_text(type)} holds {low} to {high}, signed or unsigned{wider}"
            self.fail(f"{text} does not fit in {type_text(type)}", at, holds)
        return value

    def _float_of(self, text: str, type: Attribute, at: int) -> float:
        if "0x" in text:
            size = type.compile_time_size  # type: ignore[attr-defined]
            bits = int(text, 16)
            if not 0 <= bits < 1 << (8 * size):
                self.fail(
                    f"{text[:40]} does not fit in {type_text(type)}",
                    at,
                    f"these are its bits, {2 * size} digits at most",
                )
            return float(type.unpack(bits.to_bytes(size, "little"), 1)[0])  # type: ignore[attr-defined]
        if len(text) > 400:
            self.fail("a number of this length is not read", at, "write fewer digits: f64 holds 17, or its bits, 0x...")
        return float(text)

    def _symbol(self) -> SymbolRefAttr:
        names = [self.symbol()]
        while self.texts[self.at] == "::":
            self.at += 1
            names.append(self.symbol())
        return SymbolRefAttr(names[0], names[1:])

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

    def _array(self) -> Attribute:
        self.at += 1
        self.expect("<", " after 'array'", "an array is array<i32: 1, 0>")
        element = self.type(", the element type of the array,")
        if not (isinstance(element, IntegerType) or (is_float(element) and not is_tensor(element))):
            self.fail(f"an array cannot hold {type_text(element)}", self.at - 1, "it holds numbers, array<i32: 1, 0>")
        values: list[int] = []
        floats: list[float] = []
        if self.accept(":"):
            while True:
                at = self.at
                if self.texts[at] in ("true", "false"):
                    self.at += 1
                    values.append(int(self.texts[at] == "true"))
                elif isinstance(element, IntegerType):
                    value = self._int_of(self.need("n"), element, at)
                    values.append(int(element.get_normalized_value(value)))
                else:
                    floats.append(self._float_of(self.need("n"), element, at))
                if not self.accept(","):
                    break
        self.expect(">")
        return DenseArrayBase.from_list(element, values if isinstance(element, IntegerType) else floats)  # type: ignore

    def _dense(self) -> Attribute:
        start = self.at
        self.at += 1
        self.expect("<", " after 'dense'", DENSE)
        shape: tuple[int, ...] = ()
        items: list[tuple[int, str]] = []
        blob: str | None = None
        if self.kinds[self.at] == "s":
            blob = unescape(self.need("s"))
        elif self.texts[self.at] != ">":
            shape = self._nested(items)
        self.expect(">")
        self.expect(":", " and a type after 'dense<...>'", DENSE)
        at = self.at
        type = self.type()
        if not isinstance(type, TensorType):
            self.fail(
                f"dense<...> is a tensor, not {type_text(type)}", at, f"{DENSE}; a scalar stands alone, 0.0 : f32"
            )
        element = type.element_type
        if not (isinstance(element, IntegerType | IndexType) or is_float(element)):
            self.fail(f"dense<...> cannot hold {type_text(element)}", at, "its elements are integers or floats")
        whole = tuple(d.data for d in type.shape.data)
        if blob is not None:
            return self._dense_blob(blob, type, start)
        if len(items) == 1 and shape == ():
            return self._dense_splat(items[0], type)
        if shape != whole:
            self.fail(
                f"dense<...> has the shape {list(shape)}, its type the shape {list(whole)}",
                start,
                "a single number fills the whole tensor, dense<0.0>",
            )
        if isinstance(element, IntegerType):
            ints = [int(element.get_normalized_value(self._element_int(text, element, i))) for i, text in items]
            return DenseIntOrFPElementsAttr(type, BytesAttr(element.pack(ints)))
        floats = b"".join(self._element_bytes(text, element, i) for i, text in items)
        return DenseIntOrFPElementsAttr(type, BytesAttr(floats))

    def _dense_splat(self, item: tuple[int, str], type: TensorType[Attribute]) -> Attribute:
        at, text = item
        element = type.element_type
        if isinstance(element, IntegerType | IndexType):
            return splat_attr(type, self._element_int(text, element, at))
        return DenseIntOrFPElementsAttr(type, BytesAttr(self._element_bytes(text, element, at)))  # type: ignore

    def _element_int(self, text: str, element: Attribute, at: int) -> int:
        if text in ("true", "false"):
            return int(text == "true")
        return self._int_of(text, element, at)

    def _element_bytes(self, text: str, element: Attribute, at: int) -> bytes:
        """The bytes of one float; written in hexadecimal they are kept bit for bit, which keeps a NaN's payload."""
        if text in ("true", "false"):
            self.fail(f"expected a number, found '{text}'", at, "true and false are elements of tensors of i1")
        size = element.compile_time_size  # type: ignore[attr-defined]
        if "0x" in text:
            bits = int(text, 16)
            if not 0 <= bits < 1 << (8 * size):
                self.fail(
                    f"{text[:40]} does not fit in {type_text(element)}",
                    at,
                    f"these are its bits, {2 * size} digits at most",
                )
            return bits.to_bytes(size, "little")
        try:
            packed: bytes = element.pack((self._float_of(text, element, at),))  # type: ignore[attr-defined]
        except OverflowError:
            self.fail(f"{text[:40]} does not fit in {type_text(element)}", at, "use a smaller number, or f32")
        return packed

    def _dense_blob(self, blob: str, type: TensorType[Attribute], at: int) -> Attribute:
        size = type.element_type.compile_time_size  # type: ignore[attr-defined]
        count = prod(d.data for d in type.shape.data)
        try:
            data = bytes.fromhex(blob[2:]) if blob.startswith("0x") else b""
        except ValueError:
            data = b""
        if len(data) not in (size, size * count) or not data:
            self.fail(
                f"dense<...> holds {len(data)} bytes, its type {size * count}",
                at,
                f'a string in it is all elements, or one for all, in hexadecimal: dense<"0x{"00" * size}">',
            )
        return DenseIntOrFPElementsAttr(type, BytesAttr(data))  # type: ignore

    def _nested(self, items: list[tuple[int, str]]) -> tuple[int, ...]:
        """Numbers, or lists of lists of them of one shape; gives the shape."""
        if not self.accept("["):
            text = self.texts[self.at]
            if self.kinds[self.at] != "n" and text not in ("true", "false"):
                self.fail(f"expected a number, found {self.found()}", hint=DENSE)
            items.append((self.at, text))
            self.at += 1
            return ()
        self.enter()
        count = 0
        inner: tuple[int, ...] | None = None
        while self.texts[self.at] != "]":
            at = self.at
            shape = self._nested(items)
            if inner is not None and shape != inner:
                self.fail(
                    "the rows of dense<...> differ in shape", at, "write dense<[[1, 2], [3, 4]]>, or one number for all"
                )
            inner = shape
            count += 1
            if not self.accept(","):
                break
        self.expect("]")
        self.leave()
        return (count, *(inner or ()))

    # -- locations ---------------------------------------------------------------------------------------------

    def optional_location(self) -> Attribute:
        """`loc(...)` if it is next, otherwise the unknown location."""
        if self.texts[self.at] != "loc" or self.texts[self.at + 1] != "(":
            return UNKNOWN
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
            location = UNKNOWN
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
        if not isinstance(location, FileLineColLoc | NameLoc | CallSiteLoc | FusedLoc | type(UNKNOWN)):
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

    def _counted(self, what: str) -> int:
        """The number of a line or a column."""
        if self.kinds[self.at] != "n":
            self.fail(f"expected the number of a {what}, found {self.found()}", hint=LOCATIONS)
        number = self.integer(f" of a {what}")
        if not 0 <= number <= LAST_PLACE:
            wrong = f"the number of a {what} is from 0 to {LAST_PLACE}, not {number}"
            self.fail(wrong, self.at - 1, "where the place is not known, write loc(unknown)")
        return number

    def _fused_location(self) -> Attribute:
        metadata: Attribute = NoneAttr()
        if self.accept("<"):
            metadata = self.attribute()
            self.expect(">")
        self.expect("[", hint=LOCATIONS)
        parts: list[Attribute] = []
        while self.texts[self.at] != "]":
            parts.append(self._location())
            if not self.accept(","):
                break
        self.expect("]", hint=LOCATIONS)
        return FusedLoc(parts, metadata)  # type: ignore[arg-type]


@dataclass
class Extensions:
    """What other dialects add to the reader: `weft.ir.gpu` fills it in when it is imported."""

    laid_type: Callable[[ValueReader, str], Attribute] | None = None
    """Reads the text of a type that names a layout, or of a kind of its own; BadType where it is none."""
    types: dict[str, Attribute] = field(default_factory=dict)
    """Types that are one word."""
    attributes: dict[str, Callable[[ValueReader, str], Attribute]] = field(default_factory=dict)
    """Reads what follows the name of an attribute."""


EXTENSIONS = Extensions()

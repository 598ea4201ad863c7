"""The texts of CuTe layouts: what CuTe in C++ and in Python, pycute and tensor-layouts print.

    (8,(4,2)):(4,(1,32))        (_8,_4):(_4,_1)        8:1                             Shape:Stride
    Swizzle<3,3,3> o 0 o (8,64):(64,1)        S<3,3,3> o 0 o ...    Sw<...>    SW_3_3_3      with a swizzle
    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)                 a swizzle of addresses, here of 2 bytes
    (Swizzle(3, 3, 3)) o {8} o ((8, 64) : (64, 1))     ((4, 2) : (2, 1)) o ((2, 4) : (1, 2))           compositions
    Layout((8, 64), (64, 1))        ComposedLayout(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)), offset=8)
    Tensor((4, 8) : (8, 1), offset=3)        {3} ∘ (4, 8) : (8, 1)

    composition = part { ( "o" | "∘" ) part }
    part        = swizzle | pointer | offset | "(" composition ")" | nest ":" nest | call
    nest        = number | "(" nest { "," nest } ")"

The page reads the same in page/cute.js, with the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from weft.base import LayoutError

from ..linear import LinearLayout
from .layout import CuteComposed, CuteLayout, CuteSwizzle, Nested, composed

__all__ = ["from_cute", "parse_cute"]

Value = CuteLayout | CuteComposed
Make = Callable[[], Value]
"""What a text stands for, made after all of it was read."""

TOKEN = re.compile(r"\s*(?:(?P<number>_?-?\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>[^\s]))", re.ASCII)
NEST = re.compile(r"[\s\d_,()-]", re.ASCII)
NUMBER = re.compile(r"\s*_?-?\d+", re.ASCII)
FOLLOWS = re.compile(r"\s*:|\s*[o∘]\s")
"""What comes after a shape, or after the outer part of a composition."""
STARTS = re.compile(
    r"[\s(]*(?:(?:Swizzle|Sw|S)\s*[<(]|SW_\d|smem_ptr\b|(?:Layout|ComposedLayout|Tensor)\s*\(|\{\s*-?\d+\s*\}\s*[o∘])",
    re.ASCII,
)


class BadText(Exception):
    """A text that is no CuTe layout: where, and what was expected there."""

    def __init__(self, at: int, expected: str) -> None:
        super().__init__(expected)
        self.at, self.expected = at, expected


def parse_cute(text: str) -> Value:
    """The layout of a text as CuTe, pycute or tensor-layouts print it. LayoutError with the place where it is none.

    >>> str(parse_cute("(Swizzle(3, 3, 3)) o ((8, 64) : (64, 1))"))
    'Swizzle<3,3,3> o 0 o (8,64):(64,1)'
    """
    try:
        make, end = read_cute(text, 0)
        if text[end:].strip():
            raise BadText(end + len(text[end:]) - len(text[end:].lstrip()), "the end")
    except BadText as error:
        rest = f"got {text[error.at : error.at + 8]!r}" if text[error.at :].strip() else "it ends there"
        raise LayoutError(f"the CuTe layout {text!r}, at {error.at}: expected {error.expected}, {rest}") from None
    return make()


def from_cute(text: str, in_dims: Sequence[str] | None = None, out_dim: str = "offset") -> LinearLayout:
    """The linear layout of a CuTe layout's text, from dim0, dim1, ... (or `in_dims`) to the offset.

    >>> from_cute("(4,8):(8,1)", ["row", "column"]).apply(row=2, column=3)
    {'offset': 19}
    >>> from_cute("(4,8):(9,1)")
    Traceback (most recent call last):
    ...
    weft.LayoutError: error: (4,8):(9,1): dim1 = 1 adds 1 and dim0 = 1 adds 9 to the offset; ...
    """
    return parse_cute(text).to_linear(in_dims, out_dim)


def starts_cute(text: str, at: int) -> bool:
    """Whether what begins here is in CuTe's notation, in a text that may have other things.

    Any of the parentheses that it begins with may be that of a shape, `((8,64):(64,1))`: one pass finds their ends.
    """
    if STARTS.match(text, at):
        return True
    first = at
    while at < len(text) and (text[at] == "(" or text[at].isspace()):
        at += 1
    number = NUMBER.match(text, at)
    if number and FOLLOWS.match(text, number.end()):
        return True
    opened: list[int] = []
    for i in range(first, len(text)):
        if text[i] == "(":
            opened.append(i)
        elif text[i] == ")" and opened:
            if opened.pop() < at and FOLLOWS.match(text, i + 1):
                return True
        elif not NEST.match(text[i]):
            break
    return False


def _after_nest(text: str, at: int) -> int | None:
    """Where a number or a nested tuple of numbers ends; None where there is none."""
    number = NUMBER.match(text, at)
    if number:
        return number.end()
    depth = 0
    for i in range(at, len(text)):
        letter = text[i]
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if not NEST.match(letter) or (depth == 0 and letter not in " )"):
            return None
        if depth == 0 and letter == ")":
            return i + 1
    return None


def read_cute(text: str, at: int) -> tuple[Make, int]:
    """What the CuTe layout that begins here stands for, and where it ends; BadText where it is none."""
    reader = _Reader(text, at)
    make = reader.composition()
    return make, reader.end


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text, self.end = text, at
        self._advance(at)

    def _advance(self, at: int) -> None:
        match = TOKEN.match(self.text, at)
        if match is None:
            self.kind, self.token, self.start, self.stop = "end", "", len(self.text), len(self.text)
        else:
            self.kind = str(match.lastgroup)
            self.token, (self.start, self.stop) = match[self.kind], match.span(self.kind)

    def take(self) -> str:
        token, self.end = self.token, self.stop
        self._advance(self.stop)
        return token

    def expect(self, token: str) -> None:
        if self.token != token:
            raise BadText(self.start, f"{token!r}")
        self.take()

    def number(self) -> int:
        if self.kind != "number":
            raise BadText(self.start, "a number")
        return int(self.take().removeprefix("_"))

    def nest(self) -> Nested:
        if self.token != "(":
            value = self.number()
            if self.token == "@":
                raise BadText(self.start, "a stride that is a number, and not one of a coordinate of its own")
            return value
        self.take()
        parts = [self.nest()]
        while self.token == ",":
            self.take()
            if self.token == ")":
                break
            parts.append(self.nest())
        self.expect(")")
        return tuple(parts)

    def composition(self) -> Make:
        parts = [self.part()]
        while self.token in ("o", "∘"):
            self.take()
            parts.append(self.part())
        last = parts.pop()
        if not callable(last):
            raise BadText(self.end, "a layout after it, as 'o' shape:stride")
        make = last
        offset, bits = 0, 0
        for part in reversed(parts):
            if isinstance(part, int):
                offset += part
            elif isinstance(part, _Pointer):
                bits = part.bits
            elif isinstance(part, CuteSwizzleText):
                make = _composed(part.maker(bits), offset, make)
                offset, bits = 0, 0
            else:
                make = _composed(part, offset, make)
                offset = 0
        return _composed(lambda: CuteSwizzle(0, 0, 0), offset, make) if offset else make

    def part(self) -> Make | int | _Pointer | CuteSwizzleText:
        if self.kind == "name" and self.token in ("Swizzle", "Sw", "S"):
            self.take()
            if self.token not in ("<", "("):
                raise BadText(self.start, "'<'")
            close = {"<": ">", "(": ")"}[self.take()]
            bits = self.number()
            self.expect(",")
            base = self.number()
            self.expect(",")
            shift = self.number()
            self.expect(close)
            return CuteSwizzleText(bits, base, shift)
        if self.kind == "name" and re.fullmatch(r"SW_\d+_\d+_\d+", self.token):
            return CuteSwizzleText(*map(int, self.take().split("_")[1:]))
        if self.token == "smem_ptr":
            return self.pointer()
        if self.kind == "name" and self.token in ("Layout", "ComposedLayout", "Tensor"):
            return self.call()
        if self.token == "{":
            self.take()
            value = self.number()
            self.expect("}")
            return value
        if self.token == "(" and _after_nest(self.text, self.start) is None:
            self.take()
            inside = self.whole()
            self.expect(")")
            return inside
        return self.plain()

    def whole(self) -> Make | CuteSwizzleText:
        """A composition, or a swizzle alone, as the outer part of one may be."""
        before = self.start
        part = self.part()
        if isinstance(part, CuteSwizzleText) and self.token not in ("o", "∘"):
            return part
        self._advance(before)
        return self.composition()

    def plain(self) -> Make | int:
        shape = self.nest()
        if self.token in ("o", "∘") and isinstance(shape, int):
            return shape
        self.expect(":")
        stride = self.nest()
        return lambda: CuteLayout(shape, stride)

    def pointer(self) -> _Pointer:
        """smem_ptr[16b](unset)."""
        self.take()
        self.expect("[")
        bits = self.number()
        self.expect("b")
        self.expect("]")
        if self.token == "(":
            self.take()
            while self.token != ")" and self.kind != "end":
                self.take()
            self.expect(")")
        return _Pointer(bits)

    def call(self) -> Make:
        name = self.take()
        self.expect("(")
        if name == "Layout":
            shape = self.nest()
            if self.token != ",":
                self.expect(")")
                return lambda: CuteLayout.column_major(shape)
            self.take()
            stride = self.nest()
            self.expect(")")
            return lambda: CuteLayout(shape, stride)
        parts: list[Make | CuteSwizzleText] = []
        offset = 0
        while True:
            if self.token == "offset":
                self.take()
                self.expect("=")
                offset = self.number()
            elif self.kind == "number" and _ends(self.text, self.stop):
                offset = self.number()
            else:
                parts.append(self.whole())
            if self.token != ",":
                break
            self.take()
        last = parts[-1] if parts else None
        if len(parts) != (2 if name == "ComposedLayout" else 1) or last is None or isinstance(last, CuteSwizzleText):
            raise BadText(self.start, "an outer and an inner layout" if name == "ComposedLayout" else "a layout")
        self.expect(")")
        outer = parts[0]
        if name == "Tensor":
            return _composed(lambda: CuteSwizzle(0, 0, 0), offset, last)
        return _composed(outer.maker(0) if isinstance(outer, CuteSwizzleText) else outer, offset, last)


def _ends(text: str, at: int) -> bool:
    """Whether an argument ends here."""
    return text[at:].lstrip()[:1] in (",", ")")


class _Pointer:
    """The width of the elements of a pointer to shared memory."""

    def __init__(self, bits: int) -> None:
        self.bits = bits


class CuteSwizzleText:
    """A swizzle as it was read."""

    def __init__(self, bits: int, base: int, shift: int) -> None:
        self.parts = bits, base, shift

    def maker(self, element_bits: int) -> Callable[[], CuteSwizzle]:
        """What makes it; of addresses of elements of so many bits, if that is not 0."""
        return lambda: CuteSwizzle(*self.parts).of_elements(element_bits) if element_bits else CuteSwizzle(*self.parts)


def _composed(outer: Callable[[], CuteSwizzle | Value], offset: int, inner: Make) -> Make:
    return lambda: composed(outer(), offset, inner())

"""Types and attributes of the layout IR read from text; `names` and the types themselves write them.

    tensor<128x64xf16, #blocked>    !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>    #ttg.slice<{dim = 1, ...}>

A type's text is cut at its commas; its layout is an attribute, read where it stands or from its alias.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute

from weft.base import LayoutError
from weft.layouts import Layout

from ..text import OpaqueAttr, ParseError
from ..text.type_reader import EXTENSIONS, TypeReader
from ..text.types import BadType, read_type, type_text
from ..text.values import ValueReader
from ..types import TensorDescType, bit_width, ptr_of
from .encoding import NamedLayoutAttr, encoding_for
from .memory import SHARED_MEMORY, TENSOR_MEMORY, MemorySpaceAttr, async_token, memdesc
from .names import EXAMPLES, FIELDS, padded_from

_DIMS = re.compile(r"(?:[0-9]{1,18}x)*", re.ASCII)
MEMDESC = (
    "it is written as !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>; the allocation's shape may follow, 4x64x64"
)
_SHAPE = re.compile(r"[0-9]{1,18}(?:x[0-9]{1,18})*", re.ASCII)


# -- layouts -------------------------------------------------------------------------------------------------------


def _plain(r: TypeReader, attr: Attribute) -> Any:
    """An attribute in the braces of a layout as a value of Python."""
    if isinstance(attr, IntegerAttr):
        return bool(attr.value.data) if bit_width(attr.type) == 1 else attr.value.data
    if isinstance(attr, ArrayAttr):
        return [_plain(r, item) for item in attr.data]
    if isinstance(attr, NamedLayoutAttr):
        return attr.data
    return r.fail("a layout is described by numbers, lists and other layouts")


def _pairs(r: TypeReader) -> list[list[int]]:
    """`[64:+8, 128:+16]`."""
    pairs: list[list[int]] = []
    r.expect("[")
    for _ in r.items("]"):
        interval = r.integer()
        r.expect(":")
        r.expect("+")
        pairs.append([interval, r.integer()])
    return pairs


def _fields(r: TypeReader) -> dict[str, Any]:
    """The fields of a layout, `<{a = 1}>` or `<a = 1, b = 2>`; `<{a = 1}, b = 2>` has both."""
    fields: dict[str, Any] = {}
    if r.texts[r.at] == "{":
        fields = {key: _plain(r, value) for key, value in r.dictionary().items()}
        r.accept(",")
    while r.kinds[r.at] == "i":
        name = r.need("i")
        r.expect("=")
        fields[name] = _plain(r, r.attribute())
        if not r.accept(","):
            break
    return fields


def _read_layout(r: TypeReader, name: str) -> Attribute:
    start = r.at - 1
    fields: dict[str, Any] = {}
    pairs: list[list[int]] = []
    right = f"a right one, for comparison: {EXAMPLES[name]}" if name in EXAMPLES else None
    try:
        if r.accept("<"):
            if name == "#ttg.padded_shared":
                pairs = _pairs(r)
            fields = _fields(r)
            r.expect(">")
    except ParseError as error:
        error.hint = error.hint or right
        raise
    try:
        named = padded_from(pairs, fields) if name == "#ttg.padded_shared" else FIELDS[name](fields)
    except LayoutError as error:
        is_specific = error.hint != LayoutError.way_out(error.message)  # not an example in Python's words
        r.fail(f"{name}: {error.message}", start, hint=error.hint if is_specific else right)
    except KeyError as error:
        r.fail(f"{name}: '{error.args[0]}' is missing", start, hint=right)
    except (TypeError, ValueError, IndexError, AttributeError):
        r.fail(f"{name}: these are not its fields", start, hint=right)
    return NamedLayoutAttr(named)


def read_layout(text: str, filename: str) -> Layout:
    """The layout that a text stands for, and nothing else; LayoutError with its place where it is none.

    >>> read_layout("#ttg.linear<{register = [], lane = [[0, 1]], warp = [], block = []}>", "a text").lane_bases
    ((0, 1),)
    """
    try:
        reader = ValueReader(text, filename)
        attribute = reader.attribute()
        if not isinstance(attribute, NamedLayoutAttr) or reader.kinds[reader.at] != "e":
            reader.fail("expected a layout, as #ttg.blocked<{...}>, and nothing else")
    except ParseError as error:
        raise LayoutError(error.message, error.span, source_line=error.source_line, hint=error.hint) from None
    return attribute.data


# -- types ---------------------------------------------------------------------------------------------------------


class _Inner(ValueReader):
    """Reads a part of a type's text, with the aliases of the text around it."""

    __slots__ = ("_outer",)

    def __init__(self, text: str, outer: TypeReader):
        super().__init__(text, outer.filename)
        self._outer = outer

    def alias(self, name: str) -> Attribute:
        return self._outer.alias_at_hand(name)

    def fail(self, message: str, at: int | None = None, hint: str | None = None) -> NoReturn:
        raise BadType(message)


def _cut(body: str) -> list[str]:
    """The parts between the commas that are not in brackets."""
    parts: list[str] = []
    depth = start = 0
    for i, char in enumerate(body):
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(body[start:i].strip())
            start = i + 1
    return [*parts, body[start:].strip()]


def _shape_and_element(text: str, r: TypeReader) -> tuple[tuple[int, ...], Attribute]:
    dims = _DIMS.match(text)
    end = dims.end() if dims else 0
    shape = tuple(int(n) for n in text[:end].split("x") if n)
    rest = text[end:]
    if rest.startswith(("?", "*")):
        raise BadType("a tile has a static shape")
    if len(shape) > 32:
        raise BadType(f"{len(shape)} dimensions are too many (at most 32)")
    return shape, _type(r, rest)


def _layout(text: str, r: TypeReader) -> NamedLayoutAttr:
    inner = _Inner(text, r)
    attribute = inner.attribute()
    if isinstance(attribute, OpaqueAttr):
        raise BadType(f"the layout {attribute.data[:120]} is not known here", f"known are {', '.join(FIELDS)}")
    if not isinstance(attribute, NamedLayoutAttr) or inner.kinds[inner.at] != "e":
        raise BadType(f"'{text[:80]}' is not a layout", f"layouts are an alias, #blocked, or {', '.join(FIELDS)}")
    return attribute


def _tensor(body: str, r: TypeReader) -> Attribute:
    parts = _cut(body)
    shape, element = _shape_and_element(parts[0], r)
    if len(parts) != 2:
        raise BadType("a tensor has a shape, elements and one layout", "it is written as tensor<16x32xf32, #blocked>")
    if isinstance(element, TensorType | TensorDescType):
        raise BadType(f"{type_text(element)} cannot be the element of a tensor")
    return encoding_for(_layout(parts[1], r).data, shape).tensor(element)


def _memdesc(body: str, r: TypeReader) -> Attribute:
    head, *rest = _cut(body)
    shape, element = _shape_and_element(head, r)
    if len(rest) < 2:
        raise BadType("a descriptor of memory has a shape, elements, a layout and a memory", MEMDESC)
    layout, space = _layout(rest[0], r), _Inner(rest[1], r).attribute()
    if not isinstance(space, MemorySpaceAttr):
        raise BadType(f"'{rest[1][:80]}' is not a memory", f"it is {SHARED_MEMORY} or {TENSOR_MEMORY}")
    flags = rest[2:]
    mutable = bool(flags) and flags[0] == "mutable"
    if mutable:
        flags = flags[1:]
    allocated = None
    if flags:
        if len(flags) > 1 or not _SHAPE.fullmatch(flags[0]):
            raise BadType(f"'{', '.join(flags)[:80]}' is not the shape of an allocation", MEMDESC)
        allocated = tuple(int(n) for n in flags[0].split("x"))
    return memdesc(shape, element, layout.data, mutable=mutable, space=space.data, allocated=allocated)


def _type(r: TypeReader, text: str) -> Attribute:
    """A type from its text, which may name layouts."""
    text = text.strip()
    if text.startswith("!ttg.memdesc<"):
        return _memdesc(text[13:-1], r)
    if text == "!ttg.async.token":
        return async_token
    if "#" in text:
        if text.startswith("tensor<"):
            return _tensor(text[7:-1], r)
        for start, images in (("!tt.tensordesc<", False), ("!ttng.tensordesc_im2col<", True)):
            if text.startswith(start):
                block = _type(r, text[len(start) : -1])
                if not isinstance(block, TensorType):
                    raise BadType(f"a tensor descriptor describes a tensor, not {type_text(block)}")
                return TensorDescType(block, images)
        if text.startswith("!tt.ptr<"):
            return ptr_of(_type(r, text[8:-1]))
    return read_type(text)


def _read_type(r: TypeReader, text: str) -> Attribute:
    try:
        return _type(r, text)
    except LayoutError as error:
        raise BadType(f"{text[:200]}: {error.message}", error.hint) from error
    except RecursionError:
        raise BadType("a type nested too deep") from None


def _read_space(r: TypeReader, name: str) -> Attribute:
    return MemorySpaceAttr(name)


EXTENSIONS.laid_type = _read_type
EXTENSIONS.types["!ttg.async.token"] = async_token
EXTENSIONS.attributes.update(dict.fromkeys([*FIELDS, "#ttg.padded_shared"], _read_layout))
EXTENSIONS.attributes.update(dict.fromkeys([SHARED_MEMORY, TENSOR_MEMORY], _read_space))

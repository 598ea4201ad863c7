"""Element types as Gluon names them. The IR's integers have no sign; Gluon's have, so a kind says it:

>>> name_of("u32"), name_of("f8E4M3FN"), bits_of("*u8")
('gl.uint32', 'gl.float8e4nv', 64)
"""

from __future__ import annotations

from xdsl.ir import Attribute

from weft.ir import element_of, is_pointer, pointee_of, type_text

NAMES = {
    **{f"i{bits}": f"gl.int{bits}" for bits in (1, 8, 16, 32, 64)},
    **{f"u{bits}": f"gl.uint{bits}" for bits in (8, 16, 32, 64)},
    "f16": "gl.float16",
    "bf16": "gl.bfloat16",
    "f32": "gl.float32",
    "f64": "gl.float64",
    "f8E4M3FN": "gl.float8e4nv",
    "f8E5M2": "gl.float8e5",
    "f8E5M2FNUZ": "gl.float8e5b16",
    "f8E4M3FNUZ": "gl.float8e4b8",
}


def name_of(kind: str) -> str:
    """What Gluon calls an element type."""
    if kind.startswith("*"):
        return f"gl.pointer_type({name_of(kind[1:])})"
    return NAMES[kind]


def signature_of(kind: str) -> str:
    """An element type as signatures have it.

    >>> signature_of("*f16"), signature_of("i64")
    ('*fp16', 'i64')
    """
    if kind.startswith("*"):
        return "*" + signature_of(kind[1:])
    name = NAMES[kind].removeprefix("gl.")
    return name.replace("bfloat", "bf").replace("float", "fp").replace("uint", "u").replace("int", "i")


def bits_of(kind: str) -> int:
    """Bits of an element."""
    if kind.startswith("*"):
        return 64
    return int("".join(c for c in kind.removeprefix("b")[1:3] if c.isdigit()))


def kind_of(type: Attribute, like: str = "") -> str:
    """The kind of an element type, or of a tile's; an integer has the sign of `like` (its pointee of that one's)."""
    element = element_of(type)
    if is_pointer(element):
        return "*" + kind_of(pointee_of(element), like[1:] if like.startswith("*") else "")
    text = type_text(element)
    return f"u{text[1:]}" if like.startswith("u") and is_integer(text) and text != "i1" else text


def is_integer(kind: str) -> bool:
    """Whether elements are integers, bools among them."""
    return kind[0] in "iu" and kind != "index"


def is_unsigned(kind: str) -> bool:
    """Whether Gluon computes with it as without a sign."""
    return kind.startswith("u") or kind == "i1"


def with_sign(kind: str, *, unsigned: bool) -> str:
    """The integer kind of the same width, with or without a sign."""
    return kind if kind == "i1" else ("u" if unsigned else "i") + kind[1:]

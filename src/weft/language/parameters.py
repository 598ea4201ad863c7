"""The parameters of a kernel, and what their annotations say.

x                      a value of the launch; its type is that of the argument
n: tl.int64, "i64"     a value of this type, whatever the argument is
p: tl.const, "*kfp32"  a pointer that is not stored through
B: tl.constexpr        known when the kernel is compiled
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

# Spellings of an annotation that fix a parameter's type -> the name in a signature.
_TYPE_NAMES: Final = {
    "bool": "u1", "int1": "u1", "uint1": "u1", "i1": "u1", "u1": "u1",
    "int": "i32", "uint": "u32", "float": "fp32",
    **{f"{word}int{n}": f"{letter}{n}" for word, letter in (("", "i"), ("u", "u")) for n in (8, 16, 32, 64)},
    **{f"{letter}{n}": f"{letter}{n}" for letter in "iu" for n in (8, 16, 32, 64)},
    **{f"float{n}": f"fp{n}" for n in (16, 32, 64)},
    **{f"fp{n}": f"fp{n}" for n in (16, 32, 64)},
    "half": "fp16", "double": "fp64", "bfloat16": "bf16", "bf16": "bf16",
    **{f"float8{k}": f"fp8{k}" for k in ("e4nv", "e5", "e4b8", "e5b16", "e4b15")},
    **{f"fp8{k}": f"fp8{k}" for k in ("e4nv", "e5", "e4b8", "e5b16", "e4b15")},
    "float8_e4m3fn": "fp8e4nv", "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2": "fp8e5", "float8_e5m2fnuz": "fp8e5b16",
    "void": "void",
}  # fmt: skip
_SIGNATURE_TYPES: Final = frozenset(_TYPE_NAMES.values())


def _type_name(annotation: Any) -> str:
    """An annotation in the words of a signature: `tl.float32` -> "fp32", `"const *int32"` -> "*ki32"."""
    if isinstance(annotation, str):
        text = annotation.strip().strip("'\"")
        if text.startswith("const "):
            inner = _type_name(text.removeprefix("const "))
            return "*k" + inner[1:] if inner.startswith("*") else "*k" + inner
        if text.startswith("*"):
            rest = text[1:]
            const = rest.startswith("k") and rest[1:] in _TYPE_NAMES
            return ("*k" if const else "*") + _type_name(rest[1:] if const else rest)
        text = re.sub(r"^(?:\w+\.)+", "", text)
        return _TYPE_NAMES.get(text, text)
    if isinstance(annotation, type):
        return _type_name(annotation.__name__)
    element = getattr(annotation, "element_ty", None)
    if element is not None and not hasattr(annotation, "shape"):
        return ("*k" if getattr(annotation, "const", False) else "*") + _type_name(element)
    return _type_name(str(getattr(annotation, "name", annotation)))


class KernelParam:
    """A parameter of a kernel, and what its annotation says about it."""

    def __init__(
        self, num: int, param: inspect.Parameter, do_not_specialize: bool, do_not_specialize_on_alignment: bool
    ) -> None:
        self.num = num
        self._param = param
        self.name = param.name
        self.default: Any = param.default
        self.has_default = param.default is not inspect.Parameter.empty
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment
        annotation = param.annotation
        self.annotation = "" if annotation in (None, inspect.Parameter.empty) else _type_name(annotation)
        self.is_constexpr = "constexpr" in self.annotation
        self.is_const = not self.is_constexpr and (self.annotation == "const" or self.annotation.startswith("*k"))

    @property
    def annotation_type(self) -> str:
        """The type that the annotation fixes, "" where it fixes none."""
        element = self.annotation.removeprefix("*k") if self.annotation.startswith("*k") else self.annotation
        return self.annotation if element.removeprefix("*") in _SIGNATURE_TYPES else ""

    def __repr__(self) -> str:
        return f"KernelParam({self._param})"

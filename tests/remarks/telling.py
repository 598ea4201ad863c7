"""Remarks as tests compare them: as if each kernel's definition stood on line 1 of k.py."""

from __future__ import annotations

from typing import Any

import weft
from weft.remarks import Remarks

__all__ = ["compiled", "told"]


def compiled(kernel: Any, target: str, types: str, constants: dict[str, Any], aligned: str = "", **options: Any) -> Any:
    """A kernel compiled for `types` of its arguments, separated by blanks; those named in `aligned` are multiples of
    16."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = dict(zip(names, types.split(), strict=True))
    attributes = {(kernel.arg_names.index(n),): [["tt.divisibility", 16]] for n in aligned.split()}
    return weft.compile(weft.ASTSource(kernel, signature, constants, attributes), target, options)


def told(made: Any, kind: str) -> list[str]:
    """The remarks of a kind, a line each."""
    remarks: Remarks = made.remarks.moved(made.src.places(), [("k.py", 1)])
    return str(remarks.of(kind)).splitlines()

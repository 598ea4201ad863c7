"""Write `src/weft/language/tensor_methods.pyi`: the operators and methods of `tl.tensor`, for type checkers.

    python tools/tensor_stub.py            # write it
    python tools/tensor_stub.py --check    # exit 1 if it is not what would be written

A tensor gets its operators from a table and its methods from the functions of the library (`member`), which type
checkers do not see. The parameters are those of the functions, without what the compiler passes (`_semantic`).
"""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any

from weft.language.tensors import tensor

FILE = Path(__file__).resolve().parent.parent / "src" / "weft" / "language" / "tensor_methods.pyi"
SEVERAL = ("max", "min", "reduce", "associative_scan", "split", "cdiv")
"""Methods that give a tensor or several, or a constant."""
OBJECTS = ("__eq__", "__ne__")
"""What every Python object has, with another type."""

HEAD = '''\
"""The operators and methods of `tl.tensor`, for type checkers; written by `tools/tensor_stub.py`."""

from typing import Any

from .annotations import Value
from .protocol import base_value
from .tensors import tensor

class TensorMethods(base_value):
    @property
    def T(self) -> tensor: ...
    def __round__(self) -> tensor: ...  # no kernel can call it: `Scalar` asks for it, and a tensor may be one
'''


def parameters(name: str) -> str:
    """The parameters of a method after `self`."""
    given = [p for p in inspect.signature(getattr(tensor, name)).parameters.values() if not p.name.startswith("_")][1:]
    if name.startswith("__"):
        return "".join(f", {p.name}: Any" for p in given) + (", /" if given else "")
    parts = []
    for p in given:
        star = "*" if p.kind is inspect.Parameter.VAR_POSITIONAL else ""
        parts.append(f", {star}{p.name}: Any" + (" = ..." if p.default is not inspect.Parameter.empty else ""))
    return "".join(parts)


def is_method(name: str) -> bool:
    """Is it an operator or a method of the language? `__not__` is the frontend's."""
    value: Any = inspect.getattr_static(tensor, name)
    if not inspect.isfunction(value) or name == "__not__":
        return False
    return "_semantic" in inspect.signature(value).parameters if name.startswith("_") else True


def text() -> str:
    """The whole file."""
    lines = [HEAD]
    for name in sorted(filter(is_method, dir(tensor)), key=lambda n: (not n.startswith("__"), n)):
        result = "None" if name in ("store", "atomic_store") else "Value" if name in SEVERAL else "tensor"
        ignored = "  # type: ignore[override]" if name in OBJECTS else ""
        lines.append(f"    def {name}(self{parameters(name)}) -> {result}: ...{ignored}\n")
    return "".join(lines)


def main() -> int:
    """Write the file, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if the file is not what would be written")
    if parser.parse_args().check:
        return int(FILE.read_text() != text())
    FILE.write_text(text())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Copies in many layouts: which accesses does a layout give? For Weft, and for Triton where it is installed.

    cd tests && python -m gluon.copies          # compiled by Triton 3.6: writes data/gluon_accesses.json

An entry is `{"ld 16": 4, "st 16": 4}`: of what width accesses are, in bytes, and how many a thread executes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from .sources import Source, arguments_of, load

__all__ = ["COPIES", "STORED", "accesses_in"]

HERE = Path(__file__).resolve().parent
STORED = HERE.parent / "data" / "gluon_accesses.json"
ACCESS = re.compile(r"\b(ld|st)\.global(?:\.v(\d))?\.[bfsu](\d+)")

LINES = [(elem, 2048, [each], [32], [4], [0]) for elem in ("fp32", "fp16", "i8", "fp64") for each in (1, 2, 4, 8, 16)]
TILES = [
    ("fp32", [64, 64], [1, 1], [1, 32], [4, 1], [1, 0]),
    ("fp32", [64, 64], [1, 2], [2, 16], [2, 2], [1, 0]),
    ("fp32", [64, 64], [1, 4], [4, 8], [4, 1], [1, 0]),
    ("fp32", [64, 64], [1, 8], [8, 4], [4, 1], [1, 0]),
    ("fp32", [64, 64], [2, 2], [4, 8], [2, 2], [1, 0]),
    ("fp32", [64, 64], [4, 1], [8, 4], [2, 2], [0, 1]),
    ("fp32", [64, 64], [4, 1], [8, 4], [2, 2], [1, 0]),
    ("fp32", [64, 64], [4, 4], [16, 2], [2, 2], [0, 1]),
    ("fp32", [64, 64], [1, 1], [32, 1], [4, 1], [0, 1]),
    ("fp32", [64, 64], [1, 1], [32, 1], [4, 1], [1, 0]),
    ("fp32", [8, 256], [1, 1], [8, 4], [1, 4], [1, 0]),
    ("fp16", [64, 64], [1, 1], [1, 32], [4, 1], [1, 0]),
    ("fp16", [64, 64], [1, 8], [4, 8], [4, 1], [1, 0]),
    ("fp16", [64, 64], [1, 16], [8, 4], [4, 1], [1, 0]),
    ("fp16", [64, 64], [2, 4], [2, 16], [4, 1], [1, 0]),
    ("fp16", [64, 64], [8, 1], [8, 4], [1, 4], [0, 1]),
    ("fp16", [32, 128], [1, 2], [32, 1], [1, 4], [1, 0]),
    ("i8", [64, 64], [1, 16], [16, 2], [4, 1], [1, 0]),
    ("i8", [64, 64], [1, 4], [4, 8], [4, 1], [1, 0]),
]



def _of(provider: str) -> dict[str, Source]:
    """The copies by name: rows of a tile in order of memory, or, with `turned`, its columns."""
    module, found = load(HERE / "copies_in_layouts.py", provider), dict[str, Source]()

    def keep(kernel: str, elem: str, shape: Any, *layout: Any, **more: Any) -> None:
        warps = 1
        for n in layout[2]:
            warps *= n
        constants = {**more, "L": module.gl.BlockedLayout(*layout)}
        words = " ".join("x".join(map(str, part)) for part in layout[:3])
        order = "" if len(layout[3]) == 1 else " rows" if layout[3][0] else " columns"
        sizes = "x".join(map(str, shape if isinstance(shape, list) else [shape]))
        name = f"{kernel} {elem} {sizes}: {words}{order}"
        found[name] = Source(
            getattr(module, kernel), {"x": f"*{elem}", "out": f"*{elem}", "n": "i32:16"}, constants, 90,
            {"num_warps": warps},
        )  # fmt: skip

    for elem, size, *layout in LINES:
        keep("line", elem, size, *layout, B=size)
    for elem, shape, *layout in TILES:
        keep("tile", elem, shape, *layout, M=shape[0], N=shape[1])
        keep("turned", elem, shape, *layout, M=shape[0], N=shape[1])
    return found


def accesses_in(ptx: str) -> dict[str, int]:
    """The accesses to global memory that PTX without loops has, by kind and bytes."""
    return dict(sorted(Counter(f"{k} {int(n or 1) * int(bits) // 8}" for k, n, bits in ACCESS.findall(ptx)).items()))


COPIES = _of("weft")


def main() -> None:
    """Have Triton compile them all."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.experimental.gluon._runtime import GluonASTSource

    made = {}
    for name, source in _of("triton").items():
        signature, attributes = arguments_of(source)
        constants = {(list(signature).index(k),): v for k, v in source.constexprs.items()}
        whole = GluonASTSource(source.kernel, signature, constants, attributes)
        kernel = triton.compile(whole, target=GPUTarget("cuda", 90, 32), options=source.options)
        made[name] = accesses_in(kernel.asm["ptx"])
    STORED.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""CUDA's library of mathematics (libdevice.txt): a line for each function, an entry for each tuple of argument types.

    exp f>f:expf d>d:exp        # exp(float32) -> float32 is `__nv_expf`, exp(float64) -> float64 is `__nv_exp`
    add_r* dd>d:dadd_r*         # add_rn, add_rz, add_rd and add_ru: to nearest, to zero, down, up

Letters are types: f and d are float32 and float64, i and l int32 and int64, u and U uint32 and uint64. The language
reads this for what users call (`tl.extra.libdevice`), the back ends for what a symbol means.

>>> overloads()["add_rd"]
[('dd', 'd', '__nv_dadd_rd'), ('ff', 'f', '__nv_fadd_rd')]
"""

from __future__ import annotations

from functools import lru_cache

from weft.base import data_lines

BOOLEAN = frozenset(("isnan", "isinf", "finitef", "isfinited"))
"""Functions whose int32 result becomes a boolean."""


@lru_cache(maxsize=1)
def overloads() -> dict[str, list[tuple[str, str, str]]]:
    """The overloads of each function: letters of the arguments and of the result, and the symbol."""
    table: dict[str, list[tuple[str, str, str]]] = {}
    for line in data_lines(__name__, "libdevice.txt"):
        for text in [line.replace("*", mode) for mode in "nzdu"] if "*" in line else [line]:
            name, *entries = text.split()
            pairs = (entry.split(":") for entry in entries)
            table[name] = [(*types.split(">"), f"__nv_{symbol}") for types, symbol in pairs]  # type: ignore[misc]
    return table

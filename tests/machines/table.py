"""The table of docs/explanation/gpu.md that says which GPU has which instructions, made from the rows of machines.

python tests/machines/table.py --update     # with PYTHONPATH=src:tests
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from weft.machines import MACHINES, Machine
from weft.targets.table import has, products

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "gpu.md"
MADE = re.compile(r"(?P<head><!-- made by tests/machines/table.py -->\n\n)(?P<text>(?:\|.*\n)*)")
ROWS = [m for m in MACHINES.values() if m.vendor == "nvidia"]


def multiplies(left: str, total: str, warps: int = 1) -> Callable[[Machine], bool]:
    """Whether a machine has matrix instructions for elements of a type."""
    return lambda machine: bool(products(machine, left, left, total, warps))


HAS: dict[str, Callable[[Machine], bool]] = {
    "products of f16, and of int8": lambda m: multiplies("f16", "f32")(m) and multiplies("i8", "i32")(m),
    "products of bf16, TF32, f64": lambda m: all(multiplies(*t)(m) for t in (("bf16", "f32"), ("f64", "f64"))),
    "products of fp8": multiplies("f8E4M3FN", "f32"),
    "`ampere.async_copy`": lambda m: m.async_copies,
    "`ampere.mbarrier`": lambda m: has(m, "mbarrier.init"),
    "`hopper.mbarrier` (bytes), `hopper.tma`, `async_store`": lambda m: has(m, "cp.async.bulk.tensor.2d.load"),
    "clusters (`num_ctas`)": lambda m: m.cluster_blocks > 1,
    "`hopper.warpgroup_mma`": multiplies("f16", "f32", 4),
    "registers of partitions (`worker_num_regs`)": lambda m: has(m, "setmaxnreg.dec"),
    "descriptors made by a Gluon kernel": lambda m: has(m, "tensormap.replace.global_address"),
}


def table() -> str:
    """As Markdown."""
    head = "| | " + " | ".join(str(m.generation) for m in ROWS) + " |\n"
    lines = [f"| {what} | " + " | ".join("yes" if of(m) else "" for m in ROWS) + " |\n" for what, of in HAS.items()]
    return head + "|---" * (len(ROWS) + 1) + "|\n" + "".join(re.sub(r" +\|", " |", line) for line in lines)


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    PAGE.write_text(MADE.sub(lambda m: m["head"] + table(), PAGE.read_text("utf-8")), "utf-8")

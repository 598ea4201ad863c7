"""The newest table of `benchmarks/ncu.py --save` as the notes of 27 November has it: a line for a kernel.

    python benchmarks/ncu_table.py               # print it
    python benchmarks/ncu_table.py --update      # write it to docs/notes/2026-11-27-performance.md

A cell is what was predicted and, on the GPU, measured: one number where each count in it is the same on both sides,
else "predicted, measured N". Instructions are sums of the counts that are compared; those of warps are left out where
the kernel has masks (see `benchmarks/ncu.py`).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "notes" / "2026-11-27-performance.md"
RESULTS = ROOT / "benchmarks" / "results"
SHOWN = re.compile(r"<!-- made from (ncu-.*\.json): python benchmarks/ncu_table.py --update -->\n\n((?:\|.*\n)*)")
COLUMNS = {
    "shared wavefronts: loads": r"shared load wavefronts",
    "stores": r"shared store wavefronts",
    "global sectors: loads": r"global load sectors",
    "stores ": r"global store sectors",
    "accesses of warps": r"(shared|global) (loads|stores|atomics)|ldmatrix|stmatrix|asynchronous copies",
    "of threads": r".* of threads",
    "shuffles, barriers, products": r"shuffles|barriers|.*products.*",
}


def newest() -> str:
    """The name of the newest table in benchmarks/results/."""
    return max(path.name for path in RESULTS.glob("ncu-*.json"))


def read(name: str) -> dict[str, Any]:
    """A table in benchmarks/results/."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return found


def _cell(lines: list[dict[str, Any]]) -> str:
    measured = [line for line in lines if line["measured"] is not None]
    if not measured:
        return ""
    predicted = f"{sum(line['predicted'] for line in measured):,}"
    if all(line["predicted"] == line["measured"] for line in measured):
        return predicted
    return f"{predicted}, measured {sum(line['measured'] for line in measured):,}"


def table(facts: dict[str, Any]) -> str:
    """As Markdown."""
    kernels: dict[str, list[dict[str, Any]]] = {}
    for line in facts["lines"]:
        kernels.setdefault(line["kernel"], []).append(line)
    rows = [["kernel", *(name.strip() for name in COLUMNS), "equal"], ["---"] * (len(COLUMNS) + 2)]
    for kernel, lines in kernels.items():
        cells = [_cell([x for x in lines if re.fullmatch(p, x["quantity"])]) for p in COLUMNS.values()]
        measured = [x for x in lines if x["measured"] is not None]
        equal = sum(x["predicted"] == x["measured"] for x in measured)
        rows.append([kernel, *cells, f"{equal} of {len(measured)}"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def shown(page: str) -> tuple[str, str]:
    """The table that is in a page, and the name of what it was made from. ValueError where there is none."""
    found = SHOWN.search(page)
    if found is None:
        raise ValueError("no table of ncu_table.py is in the page")
    return found[1], found[2]


def shown_newly(page: str, name: str) -> str:
    """The page with the table of results by that name."""
    head = f"<!-- made from {name}: python benchmarks/ncu_table.py --update -->\n\n"
    return SHOWN.sub(lambda _: head + table(read(name)), page)


def main() -> None:
    """Print the table, or write it to the page."""
    if sys.argv[1:] == ["--update"]:
        PAGE.write_text(shown_newly(PAGE.read_text(encoding="utf-8"), newest()), encoding="utf-8")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        print(table(read(newest())), end="")


if __name__ == "__main__":
    main()

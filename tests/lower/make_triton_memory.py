"""Have the real Triton (no GPU needed) compile the layout IR of tests/data/ttgir; keep its barriers and memory.

    python tests/lower/make_triton_memory.py

Writes tests/data/triton_memory.json: for each file that compiles, barriers in the PTX and bytes of shared memory.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"


def main() -> int:
    """Write the file; files that Triton does not compile are named and left out."""
    import triton
    from triton.backends.compiler import GPUTarget

    found: dict[str, dict[str, int]] = {}
    for path in sorted((DATA / "ttgir").glob("*.ttgir")):
        target = re.search(r'"cuda:(\d+)"', path.read_text(encoding="utf-8"))
        if target is None:
            continue
        try:
            kernel = triton.compile(str(path), target=GPUTarget("cuda", int(target[1]), 32))
        except Exception as error:  # the report goes on with the next file
            print(f"{path.stem}: {type(error).__name__}", file=sys.stderr)
            continue
        barriers = len(re.findall(r"\bbar\.sync|\bbarrier\.sync", kernel.asm["ptx"]))
        found[path.stem] = {"barriers": barriers, "bytes": kernel.metadata.shared}
    (DATA / "triton_memory.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

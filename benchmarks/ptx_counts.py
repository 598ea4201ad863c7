"""What the PTX of a kernel is made of, beside Triton's for the same source.

    python benchmarks/ptx_counts.py --capability 90 matmul

Counts instructions by kind, loads and stores by width, bytes of shared memory; and, where there is a ptxas, the
registers and spilled bytes of both. Needs the package triton, but no GPU.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter

from gpu_cases import cases
from weft.backends.nvidia.ptxas import assemble, find_tool

KINDS = (
    (r"(ld|st)\.global", "{0}.global"),
    (r"(ld|st)\.shared", "{0}.shared"),
    (r"(ld|st)\.local", "{0}.local"),
    (r"shfl", "shfl"),
    (r"ldmatrix", "ldmatrix"),
    (r"stmatrix", "stmatrix"),
    (r"mma\.sync", "mma"),
    (r"wgmma\.mma", "wgmma"),
    (r"bar\.sync|barrier", "bar.sync"),
    (r"bar\.warp", "bar.warp"),
    (r"cp\.async\.c[ag]", "cp.async"),
    (r"atom|red\.", "atomic"),
    (r"(add|sub|mul|mad|fma|div|min|max|neg|abs)\b.*\.(f16|f16x2|bf16|bf16x2|f32|f64)$", "float"),
    (r"(ex2|lg2|rcp|sqrt|rsqrt|sin|cos|tanh)", "special"),
    (r"(add|sub|mul|mad|shl|shr|and|or|xor|not|lop3|shf|bfe|bfi|min|max|neg|abs|div|rem)", "integer"),
    (r"setp|selp|set", "compare, select"),
    (r"cvt|prmt", "convert"),
    (r"mov", "mov"),
    (r"bra|ret", "branch"),
)
WIDTHS = re.compile(r"(?:\.(v\d))?\.[bfus](\d+)")


def counts(ptx: str) -> Counter[str]:
    """How many instructions of each kind; accesses by the bits that a thread moves with one."""
    found: Counter[str] = Counter()
    body = ptx[ptx.index("{", ptx.index(".entry")) :]
    for statement in re.sub(r"//.*", "", body).split(";")[:-1]:
        text = re.sub(r"^([{}\s]|\$?\w+:|\.(?:loc|pragma|file)\b[^\n]*\n|@!?%?\w+\s)*", "", statement)
        if not text or text.startswith("."):
            continue
        name = text.split()[0]
        found["all"] += 1
        for pattern, label in KINDS:
            match = re.match(pattern, name)
            if match:
                kind = label.format(*match.groups()) if "{" in label else label
                width = WIDTHS.search(name)
                if kind.startswith(("ld.", "st.")) and width:
                    kind += f".{int((width[1] or 'v1')[1:]) * int(width[2])}"
                found[kind] += 1
                break
        else:
            found["other"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", type=int, default=80)
    parser.add_argument("kernels", nargs="*", help="some of them, by the beginning of their names")
    args = parser.parse_args()
    ours, theirs = cases("weft"), cases("triton")
    for name in ours:
        if args.kernels and not any(name.startswith(k) for k in args.kernels):
            continue
        kernels = [side[name].compile(args.capability) for side in (ours, theirs)]
        tables = [counts(k.asm["ptx"]) for k in kernels]
        for table, kernel in zip(tables, kernels, strict=True):
            table["bytes of shared memory"] = int(kernel.metadata.shared)
            if find_tool():
                machine = assemble(kernel.asm["ptx"], f"sm_{args.capability}{'a' if args.capability >= 90 else ''}")
                table["registers"], table["spilled bytes"] = machine.registers, machine.spilled_bytes
        print(f"\n{name:32} {'Weft':>7} {'Triton':>7}")
        for kind in sorted({*tables[0], *tables[1]}):
            more = "  more" if tables[0][kind] > tables[1][kind] else ""
            print(f"  {kind:30} {tables[0][kind]:7} {tables[1][kind]:7}{more}")


if __name__ == "__main__":
    main()

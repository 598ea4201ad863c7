"""Store the linear layouts that Triton gives AMD's matrix layouts, in tests/data/layouts/amd.txt; no GPU is needed.

    python tools/make_amd_layouts.py            # where Triton 3.6.0 is installed; some seconds
    python tools/make_amd_layouts.py --bases    # where Triton 3.7 is: amd_bases.txt, WMMA by warp_bases and reg_bases
    python tools/make_amd_layouts.py --scales   # with Triton 3.6.0: amd_scales.txt, of products with scales

Results and operands of MFMA and WMMA: every version and size of instruction, transposed and not, k_width, warps along
both dimensions and a batch, tiles per warp, tiles larger and smaller than all warps together. A line is

    AMDMFMALayout(3, [32, 32, 8], True, [2, 2]) | 128x64 | 0,1 0,2 0,8 0,16 64,0 | 1,0 2,0 ... | 0,32 32,0 |

a layout as both languages write it, the tile's shape, and the bases of register, lane, warp and block, the lowest bit
first. Triton ends the process where it does not support a layout: a child process computes them, and another one goes
on behind those that ended it, which the first line counts.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "layouts"
MOST, MOST_OF_BASES, MOST_OF_SCALES = 900, 120, 200
"""How many cases are drawn from all that there are."""
TARGETS = {
    ("MFMA", 2): "gfx90a", ("MFMA", 3): "gfx942", ("MFMA", 4): "gfx950",
    ("WMMA", 1): "gfx1100", ("WMMA", 2): "gfx1201", ("WMMA", 3): "gfx1250",
}  # fmt: skip
MFMA = [
    ([32, 32], (2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16, 32)),
    ([16, 16], (4, 8, 16, 32, 64, 128), (1, 2, 4, 8, 16, 32)),
    ([64, 4], (4,), (4,)),
    ([4, 64], (4,), (4,)),
]
WMMA = {1: ((16,), (16,)), 2: ((16,), (8,)), 3: ((4, 32, 64, 128), (2, 8, 16))}
WARPS: Sequence[Sequence[int]] = ([1, 1], [2, 2], [4, 1], [1, 4], [2, 4], [4, 2], [1, 2, 2], [2, 2, 1])
SHAPES = {
    2: ([16, 16], [32, 32], [64, 64], [128, 64], [64, 256], [128, 128], [256, 128], [128, 32]),
    3: ([1, 64, 64], [2, 64, 32], [4, 32, 64], [8, 128, 64]),
}
TILES: Sequence[Sequence[int]] = ([1, 1], [2, 2], [1, 2], [2, 1])


def results() -> Iterator[tuple[str, tuple[str, int], Sequence[int], int]]:
    """(a layout of results, its family and version, k_widths of its operands, rank)."""
    for warps in WARPS:
        for tiles in TILES:
            rank = len(warps)
            several = [1] * (rank - 2) + list(tiles)
            more = "" if max(tiles) == 1 else f", tiles_per_warp={several}"
            for (size, depths, widths), version, transposed in itertools.product(MFMA, (2, 3, 4), (False, True)):
                if size == [64, 4] and not transposed:
                    continue
                for depth in depths:
                    layout = f"AMDMFMALayout({version}, {[*size, depth]}, {transposed}, {warps}{more})"
                    yield layout, ("MFMA", version), widths, rank
            double = f", element_bitwidth=64{more}"
            for version, transposed in itertools.product((2, 3, 4), (False, True)):
                layout = f"AMDMFMALayout({version}, [16, 16, 4], {transposed}, {warps}{double})"
                yield layout, ("MFMA", version), (1, 2), rank
            for version, (depths, widths) in WMMA.items():
                for depth, transposed in itertools.product(depths, (False, True)):
                    layout = f"AMDWMMALayout({version}, {transposed}, {warps}, [16, 16, {depth}]{more})"
                    yield layout, ("WMMA", version), widths, rank


def cases() -> list[tuple[str, str, list[int]]]:
    """(layout, target, shape): a third of them results, drawn from all, the same each time."""
    rng = random.Random(19)
    found: list[list[tuple[str, str, list[int]]]] = [[], []]
    for layout, family, widths, rank in results():
        for shape in SHAPES[rank]:
            found[0].append((layout, TARGETS[family], shape))
            for index, width in itertools.product((0, 1), widths):
                found[1].append((f"DotOperandLayout({index}, {layout}, {width})", TARGETS[family], shape))
    return sorted(rng.sample(found[0], MOST // 3) + rng.sample(found[1], MOST - MOST // 3))


PLACES: Sequence[tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]] = (
    ([], []), ([], [[0, 1], [1, 0]]), ([[0, 1], [1, 0]], []), ([[1, 0], [0, 1]], []), ([[1, 0], [2, 0]], [[0, 1]]),
    ([[0, 1], [0, 2]], [[1, 0], [0, 4]]), ([[0, 2], [2, 0]], [[0, 1], [1, 0]]), ([[0, 1], [1, 0], [2, 0]], [[0, 2]]),
    ([[0, 1], [0, 0]], [[1, 0]]), ([[1, 1], [1, 0]], [[2, 0]]),
)  # fmt: skip
"""(warp_bases, reg_bases): which tiles of the result the warps have, and the registers of one."""


def by_bases() -> list[tuple[str, str, list[int]]]:
    """(layout, target, shape) of Triton 3.7, of which each warp and register names the tile that it has."""
    rng = random.Random(37)
    found = []
    for (warps, registers), (version, (depths, widths)) in itertools.product(PLACES, WMMA.items()):
        for depth, width, transposed in itertools.product(depths, widths, (False, True)):
            layout = f"AMDWMMALayout({version}, {transposed}, {warps}, {registers}, [16, 16, {depth}])"
            operands = [f"DotOperandLayout({index}, {layout}, {width})" for index in (0, 1)]
            target = TARGETS["WMMA", version]
            found += [(text, target, shape) for text in (layout, *operands) for shape in SHAPES[2][:6]]
    return sorted(rng.sample(found, MOST_OF_BASES))


def scales() -> list[tuple[str, str, list[int]]]:
    """(layout of scales, target, shape) of products with scales on gfx950 and gfx1250."""
    rng = random.Random(950)
    found = []
    for warps, tiles in itertools.product([w for w in WARPS if len(w) == 2], TILES):
        more = "" if max(tiles) == 1 else f", tiles_per_warp={tiles}"
        for index, transposed in itertools.product((0, 1), (False, True)):
            for shape in itertools.product((16, 32, 64, 128, 256), (2, 4, 8, 16)):
                for size in ([32, 32, 64], [16, 16, 128]):
                    operand = f"DotOperandLayout({index}, AMDMFMALayout(4, {size}, {transposed}, {warps}{more}), 16)"
                    found.append((f"mfma_scale_layout({operand}, {list(shape)})", TARGETS["MFMA", 4], list(shape)))
                operand = f"AMDWMMALayout(3, {transposed}, {warps}, [16, 16, 128]{more})"
                text = f"wmma_scale_layout(DotOperandLayout({index}, {operand}, 16), {list(shape)})"
                found.append((text, TARGETS["WMMA", 3], list(shape)))
    return sorted(rng.sample(found, MOST_OF_SCALES))


def bases(layout: str, target: str, shape: list[int]) -> str:
    """The bases that Triton gives."""
    from triton._C.libtriton import gluon_ir, ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.experimental.gluon import language as gl

    names = {"DotOperandLayout": gl.DotOperandLayout, "AMDMFMALayout": gl.amd.AMDMFMALayout}
    names |= {
        "mfma_scale_layout": gl.amd.cdna4.get_mfma_scale_layout,
        "wmma_scale_layout": gl.amd.gfx1250.get_wmma_scale_layout,
    }
    made = eval(layout, {**names, "AMDWMMALayout": gl.amd.AMDWMMALayout})
    if "scale" in layout:
        parts = (made.reg_bases, made.lane_bases, made.warp_bases, made.block_bases)
        return _written(parts)
    lanes = 64 if target.startswith("gfx9") else 32
    context = ir.context()
    ir.load_dialects(context)
    make_backend(GPUTarget("hip", target, lanes)).load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    module = builder.create_module()
    warps = 1
    parent = made.parent if hasattr(made, "parent") else made
    for count in [2] * len(parent.warp_bases) if hasattr(parent, "warp_bases") else parent.warps_per_cta:
        warps *= count
    module.set_attr("ttg.target", builder.get_string_attr(f"hip:{target}"))
    for key, value in (("num-warps", warps), ("num-ctas", 1), ("threads-per-warp", lanes)):
        module.set_attr(f"ttg.{key}", builder.get_int32_attr(value))
    builder.set_loc("layouts", 1, 0)
    function = builder.get_or_insert_function(module, "f", builder.get_function_ty([], []), "public", False)
    module.push_back(function)
    builder.set_insertion_point_to_start(function.add_entry_block())
    linear = builder.to_linear_layout(made._to_ir(builder), shape)
    return _written((linear.reg_bases, linear.lane_bases, linear.warp_bases, linear.block_bases))


def _written(parts: Sequence[Sequence[Sequence[int]]]) -> str:
    return " | ".join(" ".join(",".join(map(str, basis)) for basis in part) for part in parts)


def computed(todo: list[tuple[str, str, list[int]]]) -> tuple[list[str], int]:
    """The lines, in children; and how many of the cases have none."""
    lines: list[str] = []
    at = without = 0
    while at < len(todo):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            with os.fdopen(writing, "w") as pipe:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                for layout, target, shape in todo[at:]:
                    try:
                        line = f"{layout} | {'x'.join(map(str, shape))} | {bases(layout, target, shape)}".rstrip()
                    except Exception:
                        line = ""
                    print(line, file=pipe, flush=True)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            done = [line.rstrip("\n") for line in pipe]
        os.waitpid(child, 0)
        lines += [line for line in done if line]
        without += done.count("")
        at += len(done)
        if at < len(todo):
            without, at = without + 1, at + 1
    return lines, without


def main(arguments: Sequence[str]) -> None:
    """Write the file."""
    kinds = {
        "--bases": (by_bases, "3.7.1", "amd_bases.txt"),
        "--scales": (scales, "3.6.0", "amd_scales.txt"),
        "": (cases, "3.6.0", "amd.txt"),
    }
    kind = next((x for x in arguments if x in kinds), "")
    drawn, version, name = kinds[kind]
    lines, without = computed(drawn())
    head = f"# {len(lines)} layouts of Triton {version}, made by tools/make_amd_layouts.py"
    head += f"{' ' * bool(kind)}{kind}; it has none for {without} more"
    (FOLDER / name).write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    print(f"{len(lines)} layouts, {without} that Triton refuses")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Random kernels over rows of any length at any address: a GPU against the CPU, which has no rule of its own for rows.

    cd tests && python -m fuzz.rows --seeds 0:1000 --target sim:cuda:90
    cd tests && python -m fuzz.rows --seeds 0:200 --wide        # tiles of 16,384 to 65,536 elements
    cd tests && python -m fuzz.rows --seeds 17:18 --show

A program computes one row of up to three arrays, or all rows in a loop: with offsets, masks in several spellings, a
sum or a maximum, elements of several types, arrays that begin at any element, and stores at distances of their own.
Numbers are small and whole, so that results do not depend on the order of sums.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import weft

TYPES: dict[str, Any] = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "i32": np.int32, "f32": np.float32, "i64": np.int64, "f64": np.float64,
}  # fmt: skip
BLOCKS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
WIDE = {16_384: 8, 32_768: 16, 65_536: 32}
"""Tiles of which a thread holds as much as it has registers, and their warps."""
EMPTY = 77
ALIGNED = 16


@dataclass
class Rows:
    """A kernel, and what it is launched with."""

    source: str
    arrays: dict[str, tuple[str, int]]
    """The type and the number of elements of each; those that are written are called `o...`."""
    values: dict[str, int]
    programs: int
    warps: int


def generate(seed: int, is_wide: bool = False) -> Rows:
    """The kernel of a seed."""
    draw = random.Random(seed)
    block, rows = draw.choice(list(WIDE) if is_wide else BLOCKS), draw.choice((1, 2) if is_wide else (1, 3, 5))
    n = max(1, draw.choice((block, block - 1, block // 2, block // 2 + 1, block - 3, draw.randint(1, block))))
    stride = draw.choice((n, n, n + 1, n + draw.randint(0, 9), block, -(-n // 8) * 8))
    is_masked = draw.random() < 0.85
    if not is_masked:
        n, stride = block, max(stride, block)
    in_loop = draw.random() < 0.25
    row = "row.to(tl.int64)" if draw.random() < 0.3 and not in_loop else "row"
    arrays: dict[str, tuple[str, int]] = {}
    kinds = draw.sample(list(TYPES), draw.choice((1, 1, 2, len(TYPES))))

    def mask() -> str:
        texts = (
            "i < n",
            "i < n",
            "i <= n - 1",
            "n > i",
            "(i < n) & (row < 1000)",
            "i + 1 < n + 1",
            "(i < n) & (i < B - 2)",
        )
        return draw.choice(texts)

    first = mask()

    def masked() -> str:
        return f", mask={first if draw.random() < 0.8 else mask()}" if is_masked else ""

    lines = []
    loads = draw.choice((1, 1, 2, 3))
    for k in range(loads):
        is_weight, offset = draw.random() < 0.35, draw.choice((0, 0, 0, 1, 3, draw.randint(0, 40)))
        arrays[f"x{k}"] = (draw.choice(kinds), (1 if is_weight else rows) * stride + offset + block)
        other = f"{masked()}, other={draw.choice((0, 0, 3))}" if is_masked else ""
        lines.append(f"v{k} = tl.load(x{k}{'' if is_weight else f' + {row} * s'} + i + {offset}{other})")
    accumulator = draw.choice(("tl.float32", "tl.float32", "tl.int32"))
    lines.append("a = " + " + ".join(f"v{k}.to({accumulator}) * {k + 1}" for k in range(loads)))
    if draw.random() < 0.3:
        lines.append("a = tl.where(i % 3 == 1, a, -a)")
    for _ in range(draw.choice((0, 1, 2, 3) if is_wide else (0, 0, 1, 2))):
        reduced = f"tl.{draw.choice(('sum', 'max', 'min'))}(tl.where({first if is_masked else 'i < B'}, a, 0), 0) % 64"
        lines.append(f"a = a {draw.choice('+-')} {reduced}")
    if draw.random() < 0.2:
        lines.append("a = a * 2 + i")
    apart = stride + draw.choice((0, 1, 3))
    for k in range(draw.choice((1, 1, 1, 2))):
        offset, pitch = draw.choice((0, 0, 0, 0, 1, 5)), draw.choice(("s", "s", "s", "q"))
        arrays[f"o{k}"] = (draw.choice(kinds), rows * apart + offset + block)
        value = f"{draw.choice(('a', 'a', 'v0'))}.to(o{k}.dtype.element_ty)"
        lines.append(f"tl.store(o{k} + row * {pitch} + i + {offset}, {value}{masked()})")
    body = ["i = tl.arange(0, B)"]
    body += (
        ["for row in range(R):", *("    " + line for line in lines)] if in_loop else ["row = tl.program_id(0)", *lines]
    )
    head = ["import weft", "import weft.language as tl", "", "", "@weft.jit"]
    head.append(f"def kernel({', '.join(arrays)}, n, s, q, R: tl.constexpr, B: tl.constexpr):")
    source = "\n".join([*head, *("    " + line for line in body), ""])
    values = {"n": n, "s": stride, "q": apart, "R": rows, "B": block}
    return Rows(source, arrays, values, 1 if in_loop else rows, WIDE.get(block) or draw.choice((1, 2, 4, 4, 8)))


def memory(draw: random.Random, kind: str, size: int, is_output: bool) -> NDArray[Any]:
    """An array that begins at any of its elements in a vector of memory."""
    element = np.dtype(TYPES[kind])
    room = np.zeros(size * element.itemsize + 2 * ALIGNED, np.uint8)
    begin = -room.ctypes.data % ALIGNED + draw.choice((0, 0, 0, *range(0, ALIGNED, element.itemsize)))
    array = room[begin : begin + size * element.itemsize].view(element)
    numbers = np.random.default_rng(draw.randrange(1 << 30)).integers(0 if kind[0] == "u" else -4, 5, size)
    array[:] = np.full(size, EMPTY).astype(element) if is_output else numbers.astype(element)
    return array


def difference(seed: int, target: str, is_wide: bool = False) -> str:
    """What a target computes otherwise than the CPU; "" if nothing."""
    program, found = generate(seed, is_wide), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows_{seed}.py")
        path.write_text(program.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for where in ("cpu", target):
            draw = random.Random(seed)
            given = {name: memory(draw, *of, name.startswith("o")) for name, of in program.arrays.items()}
            with weft.target(where):
                module.kernel[(program.programs,)](**given, **program.values, num_warps=program.warps)
            found.append(given)
    for name, expected in found[0].items():
        if expected.tobytes() != found[1][name].tobytes():
            places = np.flatnonzero(expected != found[1][name])[:8].tolist()
            return f"seed {seed}: {name} differs at {places}, {program.warps} warps, {program.values}\n{program.source}"
    return ""


def main() -> int:
    """Run seeds and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:1000", help="first:last")
    parser.add_argument("--target", default="sim:cuda:90")
    parser.add_argument("--wide", action="store_true", help="of tiles of 16,384 to 65,536 elements")
    parser.add_argument("--show", action="store_true", help="print the kernels instead")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    if options.show:
        print("\n\n".join(generate(seed, options.wide).source for seed in range(first, last)))
        return 0
    differing = 0
    for seed in range(first, last):
        what = difference(seed, options.target, options.wide)
        differing += bool(what)
        if what:
            print(what, flush=True)
    print(f"{differing} of {last - first} kernels differ between cpu and {options.target}")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())

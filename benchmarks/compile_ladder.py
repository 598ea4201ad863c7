"""How compile time grows with the length of a kernel: CPU seconds up a ladder of sizes, and the exponent fitted.

    python benchmarks/compile_ladder.py                          # every ladder, for cpu and cuda:90
    python benchmarks/compile_ladder.py operations calls --targets cpu --limit 1000
    python benchmarks/compile_ladder.py sorts --profile          # where the time of the longest one goes

A ladder writes a kernel n long, for several n, all else equal. Each is compiled anew, in a process where
the shortest was compiled before; the clock is the processor's, all threads together. `growth` is the exponent p of
`seconds ~ n^p`, fitted to the upper half of the ladder, where what every kernel pays no longer hides it; what grows in
a straight line has 1, and a ladder fails above `LIMIT`. For cuda it is compiled to PTX, which
needs no GPU.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import json
import math
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

LIMIT = 1.3
"""The largest exponent that is taken for growth in a straight line: with constants to pay, caches and noise."""

HEAD = "import weft\nimport weft.language as tl\n"
TILE = "    i = tl.arange(0, BLOCK)\n    a = tl.load(x + i)\n    b = tl.load(y + i)\n"
END = "    tl.store(o + i, a)\n"
SIGNATURE = {"x": "*fp32", "y": "*fp32", "o": "*fp32", "n": "i32"}
KERNEL = "@weft.jit\ndef k(x, y, o, n, BLOCK: tl.constexpr):\n"


class Program(NamedTuple):
    """The source of a kernel `k`, and what it is compiled for."""

    source: str
    signature: dict[str, str] = SIGNATURE
    block: int = 1024


class Ladder(NamedTuple):
    """A kernel of every length."""

    program: Callable[[int], Program]
    sizes: Sequence[int]
    what: str


def tile_kernel(body: str, before: str = "", block: int = 1024) -> Program:
    """A kernel that changes `a`, one tile, by `body`."""
    return Program(HEAD + before + KERNEL + TILE + body + END, block=block)


def operations(n: int) -> Program:
    lines = ("a = a * b + {}.5", "a = tl.maximum(a, b - {})", "b = b * 0.5 + a", "a = tl.where(b > {}, a, b)")
    return tile_kernel("".join(f"    {lines[j % 4].format(j)}\n" for j in range(n)))


def scalars(n: int) -> Program:
    body = "".join(f"    s = s * 3 + {j}\n" if j % 2 else "    s = s ^ (s >> 3)\n" for j in range(n))
    return Program(HEAD + KERNEL + "    s = n\n" + body + "    tl.store(o, s.to(tl.float32))\n")


def terms(n: int) -> Program:
    return tile_kernel("    a = " + " + ".join(f"b * {j}.0" for j in range(n)) + "\n")


def unrolling(n: int) -> Program:
    return tile_kernel(f"    for j in tl.static_range({n}):\n        a = a * b + j\n")


def nested_unrolling(n: int) -> Program:
    m = math.isqrt(n)
    body = f"    for j in tl.static_range({m}):\n        for h in tl.static_range({m}):\n"
    body += "            a = a * b + j * h\n"
    return tile_kernel(body)


def calls(n: int) -> Program:
    before = "@weft.jit\ndef f(a, b):\n    c = a * b\n    return c + a\n"
    return tile_kernel("    a = f(a, b)\n" * n, before)


def call_tree(n: int) -> Program:
    before = "@weft.jit\ndef f0(a, b):\n    return a * b + 1\n"
    depth = n.bit_length() - 1
    for j in range(depth):
        before += f"@weft.jit\ndef f{j + 1}(a, b):\n    c = f{j}(a, b)\n    return f{j}(c, b)\n"
    return tile_kernel(f"    a = f{depth}(a, b)\n", before)


def elif_chain(n: int) -> Program:
    body = "    if n == 0:\n        a += 1\n"
    return tile_kernel(body + "".join(f"    elif n == {j + 1}:\n        a *= {j}\n" for j in range(n)))


def branches(n: int) -> Program:
    return tile_kernel("".join(f"    if n > {j}:\n        a = a * b + {j}\n" for j in range(n)))


def nested_branches(n: int) -> Program:
    body = "".join("    " * (j + 1) + f"if n > {j}:\n" + "    " * (j + 2) + "a = a * b + 1\n" for j in range(n))
    return tile_kernel(body)


def loops(n: int) -> Program:
    return tile_kernel("".join(f"    for j in range(n):\n        a = a * b + {j}\n" for j in range(n)))


def whiles(n: int) -> Program:
    body = "    j = 0\n    while j < n:\n        a = a * b + {0}\n        j += 1\n"
    return tile_kernel("".join(body.format(j) for j in range(n)))


def reducing_whiles(n: int) -> Program:
    return tile_kernel("".join(f"    while tl.max(a) > {j}:\n        a = a - b\n" for j in range(n)), block=128)


def nested_loops(n: int) -> Program:
    body = "".join(
        "    " * (j + 1) + f"for j{j} in range(n):\n" + "    " * (j + 2) + f"a = a * b + j{j}\n" for j in range(n)
    )
    return tile_kernel(body)


def nested_accesses(n: int) -> Program:
    body = "".join(
        "    " * (j + 1) + f"for j{j} in range(n):\n"
        + "    " * (j + 2) + f"tl.store(o + j{j} * BLOCK + i, tl.load(o + (i ^ {j})) + 1)\n"
        for j in range(n)
    )  # fmt: skip
    return tile_kernel(body)


def carried(n: int) -> Program:
    body = "".join(f"    c{j} = a + {j}\n" for j in range(n)) + "    for j in range(n):\n"
    body += "".join(f"        c{j} = c{j} * b + {j}\n" for j in range(n))
    return tile_kernel(body + "".join(f"    a += c{j}\n" for j in range(n)), block=128)


def accesses(n: int) -> Program:
    body = "".join(f"    tl.store(o + {j} * BLOCK + i, tl.load(x + {j} * n + i, i < n) + a)\n" for j in range(n))
    return tile_kernel(body)


def masks(n: int) -> Program:
    return tile_kernel(
        "".join(f"    a += tl.load(x + {j} * BLOCK + i, mask=i < n - {j}, other=0.0)\n" for j in range(n))
    )


def arguments(n: int) -> Program:
    names = [f"p{j}" for j in range(n)]
    body = "".join(f"    a += tl.load({name} + i)\n" for name in names)
    head = f"@weft.jit\ndef k(x, y, o, {', '.join(names)}, BLOCK: tl.constexpr):\n"
    signature = {"x": "*fp32", "y": "*fp32", "o": "*fp32", **dict.fromkeys(names, "*fp32")}
    return Program(HEAD + head + TILE + body + END, signature)


def reductions(n: int) -> Program:
    return tile_kernel("    a = a - tl.max(a * b, 0)\n" * n)


def sorts(n: int) -> Program:
    return tile_kernel("    a = tl.sort(a * b)\n" * n, block=128)


def products(n: int) -> Program:
    body = "    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]\n"
    body += "    a = tl.load(x + i)\n    b = tl.load(y + i)\n" + "    a = tl.dot(a, b)\n" * n
    return Program(HEAD + KERNEL + body + END, block=32)


def tile(n: int) -> Program:
    return tile_kernel("    a = a * b + tl.exp(b)\n    a = a - tl.sum(a)\n", block=n)


def tile_of_sort(n: int) -> Program:
    return tile_kernel("    a = tl.sort(a * b)\n", block=n)


def tile_of_scan(n: int) -> Program:
    return tile_kernel("    a = tl.cumsum(a * b, 0)\n", block=n)


def tile_of_product(n: int) -> Program:
    """n is how many elements each tile has."""
    return products(1)._replace(block=math.isqrt(n))


LADDERS: dict[str, Ladder] = {
    "operations": Ladder(operations, (250, 500, 1000, 2000, 4000), "statements of one operation or two on a tile"),
    "scalars": Ladder(scalars, (500, 1000, 2500, 5000), "statements on a scalar"),
    "terms": Ladder(terms, (250, 500, 1000, 1500), "terms of one sum"),
    "unrolling": Ladder(unrolling, (250, 500, 1000, 2000, 4000), "iterations of a static_range"),
    "nested_unrolling": Ladder(nested_unrolling, (256, 1024, 4096), "iterations of two nested static_ranges"),
    "calls": Ladder(calls, (250, 500, 1000, 2000), "calls of one function"),
    "call_tree": Ladder(call_tree, (256, 512, 1024, 2048, 4096), "leaves of a binary tree of calls"),
    "elif_chain": Ladder(elif_chain, (200, 400, 800, 1500), "branches of one if"),
    "branches": Ladder(branches, (100, 200, 400, 800), "ifs, one after the other"),
    "nested_branches": Ladder(nested_branches, (12, 24, 48, 96), "ifs, one within the other"),
    "loops": Ladder(loops, (50, 100, 200, 400), "loops, one after the other"),
    "whiles": Ladder(whiles, (50, 100, 200, 400), "loops of while, one after the other"),
    "reducing_whiles": Ladder(reducing_whiles, (50, 100, 200), "the same, with a reduction in each condition"),
    "nested_loops": Ladder(nested_loops, (5, 10, 20), "loops, one within the other"),
    "nested_accesses": Ladder(nested_accesses, (5, 10, 20), "the same, with a load and a store in each"),
    "carried": Ladder(carried, (25, 50, 100, 200), "tiles that a loop carries"),
    "accesses": Ladder(accesses, (100, 200, 400, 800), "pairs of a load and a store"),
    "masks": Ladder(masks, (50, 100, 200, 400), "loads with masks that differ"),
    "arguments": Ladder(arguments, (50, 100, 200, 400), "pointers given"),
    "reductions": Ladder(reductions, (50, 100, 200, 400), "reductions of a tile"),
    "sorts": Ladder(sorts, (4, 8, 16, 32), "sorts of 128 elements"),
    "products": Ladder(products, (8, 16, 32, 64), "products of tiles"),
    "tile": Ladder(tile, tuple(1 << j for j in range(10, 18)), "elements of a tile"),
    "tile_of_sort": Ladder(tile_of_sort, tuple(1 << j for j in range(6, 13)), "elements sorted"),
    "tile_of_scan": Ladder(tile_of_scan, tuple(1 << j for j in range(8, 15)), "elements scanned"),
    "tile_of_product": Ladder(tile_of_product, (1 << 10, 1 << 12, 1 << 14), "elements of each tile multiplied"),
}


def source_of(program: Program, folder: str, name: str) -> Any:
    """The program as something to compile."""
    import weft

    path = Path(folder, f"{name}.py")
    path.write_text(program.source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return weft.ASTSource(module.k, program.signature, {"BLOCK": program.block})


def climb(name: str, target: str, sizes: Sequence[int], profile: bool = False) -> list[float]:
    """CPU seconds for each size, in this process."""
    import weft

    weft.knobs.compilation.always_compile = True
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for size in [sizes[0], *sizes]:
            source = source_of(LADDERS[name].program(size), folder, f"{name}_{size}")
            profiler = cProfile.Profile() if profile and size == sizes[-1] else None
            if profiler:
                profiler.enable()
            begin = time.process_time()
            weft.compile(source, target=target)
            seconds.append(time.process_time() - begin)
            if profiler:
                profiler.disable()
                pstats.Stats(profiler).sort_stats("tottime").print_stats(40)
                pstats.Stats(profiler).sort_stats("cumtime").print_stats(70)
    return seconds[1:]


def growth(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent p of `seconds ~ sizes^p` over the upper half of a ladder, by least squares of the logarithms."""
    kept = max(2, (len(sizes) + 1) // 2)
    xs, ys = ([math.log(v) for v in values[-kept:]] for values in (sizes, seconds))
    x0, y0 = sum(xs) / kept, sum(ys) / kept
    return sum((x - x0) * (y - y0) for x, y in zip(xs, ys, strict=True)) / sum((x - x0) ** 2 for x in xs)


def main() -> int:
    parser = argparse.ArgumentParser(description="How compile time grows with the length of a kernel.")
    parser.add_argument("ladders", nargs="*", help=", ".join(LADDERS))
    parser.add_argument("--targets", default="cpu,cuda:90")
    parser.add_argument("--limit", type=int, default=1 << 30, help="leave out sizes above this")
    parser.add_argument("--profile", action="store_true", help="print where the time of the largest size goes")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one ladder and target")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    failed = 0
    for name in given.ladders or LADDERS:
        sizes = [n for n in LADDERS[name].sizes if n <= given.limit]
        if len(sizes) < 2:
            continue
        for target in given.targets.split(","):
            if given.json or given.profile:
                print(json.dumps(climb(name, target, sizes, given.profile)))
                continue
            command = [sys.executable, __file__, name, "--targets", target, "--limit", str(given.limit), "--json"]
            try:
                done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=given.timeout)
                seconds = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
                said = done.stderr.strip()[-300:]
            except subprocess.TimeoutExpired:
                seconds, said = None, f"no end after {given.timeout:.0f} s"
            if seconds is None:
                print(f"{name:17} {target:8} FAILED: {said}", flush=True)
                failed += 1
                continue
            exponent = growth(sizes, seconds)
            failed += exponent > LIMIT
            row = "  ".join(f"{n}: {s:.2f}" for n, s in zip(sizes, seconds, strict=True))
            verdict = "" if exponent <= LIMIT else "  TOO STEEP"
            print(f"{name:17} {target:8} growth {exponent:5.2f}   {row}{verdict}", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())

"""Functions of many blocks are divided, and their parts do what the whole did: scalars and variables go through."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.llvm import parts

LADDER = Path(__file__).resolve().parents[2] / "benchmarks" / "compile_ladder.py"


def functions(kernel: Any) -> dict[str, list[str]]:
    """The lines of each function of a compiled kernel."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in kernel.asm["llir"].splitlines():
        if line.startswith("define"):
            name = line.partition("@")[2].partition("(")[0]
            found[name] = []
        elif name:
            found[name].append(line)
    return found


@pytest.fixture
def all_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function becomes as many parts as it can."""
    monkeypatch.setattr(parts, "LONG", 0)
    monkeypatch.setattr(parts, "PART", 2)


@weft.jit
def flow(x, o, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    total = tl.sum(a, 0)  # what a part gives back
    most = 0.0
    for j in range(n):  # polls: a part may end the program
        b = tl.load(x + j * BLOCK + i, mask=i < n * 10, other=0)
        most = tl.maximum(most, tl.max(b, 0))
        if j % 2 == 0:
            a += b * total
            total += tl.sum(b * a, 0)
        elif j == 3:
            a = tl.sort(a)
            c = tl.cumsum(a, 0)
            tl.store(o + BLOCK + i, c)
        tl.store(o + 2 * BLOCK + i, tl.load(o + 2 * BLOCK + i) + a)
    iterations = 0
    while tl.sum(a, 0) > 1.0:
        a = a * 0.5
        iterations += 1
    if most > 1e9:
        return
    tl.store(o + i, a + total + most + iterations)
    tl.atomic_add(o + 3 * BLOCK + i % 4, a)


def launched(x: np.ndarray, n: int) -> np.ndarray:
    o = np.zeros(4 * 64, np.float32)
    flow[(1,)](x, o, n, BLOCK=64)
    return o


def test_parts_do_what_the_whole_did(all_divided: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random(64 * 8, np.float32)
    with weft.knobs.compilation.scope():
        weft.knobs.compilation.always_compile = True
        source = weft.ASTSource(flow, {"x": "*fp32", "o": "*fp32", "n": "i32"}, {"BLOCK": 64})
        names = list(functions(weft.compile(source, target="cpu")))
        assert sum("weft.program.part" in name for name in names) >= 8
        flow.device_caches.clear()
        divided = [launched(x, n) for n in (0, 1, 5)]
        monkeypatch.undo()
        flow.device_caches.clear()
        for whole, n in zip(divided, (0, 1, 5), strict=True):
            np.testing.assert_array_equal(launched(x, n), whole)


@pytest.mark.parametrize(("name", "size"), [("loops", 90), ("elif_chain", 120)])
def test_no_function_has_very_many_blocks(name: str, size: int, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("compile_ladder", LADDER)
    assert spec is not None and spec.loader is not None
    ladder = importlib.util.module_from_spec(spec)
    sys.modules["compile_ladder"] = ladder
    spec.loader.exec_module(ladder)
    source = ladder.source_of(ladder.LADDERS[name].program(size), str(tmp_path), f"{name}_{size}")
    found = functions(weft.compile(source, target="cpu"))
    blocks = {function: sum(line.endswith(":") for line in lines) for function, lines in found.items()}
    assert len(blocks) > 3 and sum(blocks.values()) > parts.LONG
    assert max(blocks.values()) < 3 * parts.PART


def test_a_nest_does_not_write_very_many_tiles(tmp_path: Path) -> None:
    names = [f"c{j}" for j in range(70)]
    lines = ["import weft", "import weft.language as tl", "@weft.jit", "def k(x, n):", "    i = tl.arange(0, 64)"]
    lines += [f"    {name} = tl.load(x + i) + {j}" for j, name in enumerate(names)] + ["    for j in range(n):"]
    lines += [f"        {name} = {name} * 2 + j" for name in names]
    lines += [f"    tl.store(x + {64 * j} + i, {name})" for j, name in enumerate(names)]
    path = tmp_path / "many_carried.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("many_carried", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = weft.compile(weft.ASTSource(module.k, {"x": "*fp32", "n": "i32"}, {}), target="cpu")
    stores = [block.count("  store ") for block in kernel.asm["llir"].split(":\n")]
    assert max(stores) <= 64  # two copies of a body at most
    x = np.zeros(64 * 70, np.float32)
    module.k[(1,)](x, 3)
    want = [((j * 2 + 0) * 2 + 1) * 2 + 2 for j in range(70)]
    np.testing.assert_array_equal(x.reshape(70, 64), np.repeat(np.float32(want)[:, None], 64, 1))


def written_kernel(source: str, folder: Path) -> Any:
    """The kernel `k` of a text."""
    path = folder / "written_kernel.py"
    path.write_text("import weft\nimport weft.language as tl\n@weft.jit\n" + source)
    spec = importlib.util.spec_from_file_location("written_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k


def test_scalars_that_are_stored_one_by_one_are_divided_too(tmp_path: Path) -> None:
    """In one block 800 of them took 5 s, 2,000 no end; what a loop carries is read by all parts."""
    count = 300
    source = "def k(o, n):\n" + "".join(f"    c{j} = {j}\n" for j in range(20)) + "    for j in range(n):\n"
    source += "".join(f"        c{j} = c{j} * 3 + c{(j + 1) % 20}\n" for j in range(20))
    source += "".join(f"    tl.store(o + n * {j}, c{j % 20} + {j})\n" for j in range(count))
    kernel = written_kernel(source, tmp_path)
    found = functions(weft.compile(weft.ASTSource(kernel, {"o": "*i32", "n": "i32"}, {}), target="cpu"))
    stores = [sum(line.startswith("  store") for line in lines) for lines in found.values()]
    assert sum(stores) >= count and max(stores) <= 100
    o = np.zeros(2 * count, np.int32)
    kernel[(1,)](o, 2)
    c = list(range(20))
    for _ in range(2):
        for j in range(20):
            c[j] = c[j] * 3 + c[(j + 1) % 20]
    np.testing.assert_array_equal(o[::2], [c[j % 20] + j for j in range(count)])


@pytest.mark.slow
def test_a_long_chain_is_not_computed_again_under_each_broadcast(tmp_path: Path) -> None:
    """Each sum is of a tile twice as large as the chain, which was computed in its nest from the beginning."""
    sizes = []
    for count in (60, 120):
        source = "def k(x, B: tl.constexpr):\n    i = tl.arange(0, B)\n    a = tl.load(x + i)\n    b = a\n"
        source += "    a = a + tl.sum(tl.reshape(tl.cat(a, b, can_reorder=True), (2, B)), 0)\n" * count
        kernel = written_kernel(source + "    tl.store(x + i, a)\n", tmp_path)
        compiled = weft.compile(weft.ASTSource(kernel, {"x": "*fp32"}, {"B": 256}), target="cpu")
        sizes.append(compiled.asm["llir"].count("\n"))
    assert sizes[1] < 2.6 * sizes[0]

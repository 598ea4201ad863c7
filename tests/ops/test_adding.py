"""An operation is five files: docs/howto/adding.md says which, and what is added there works on every target."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from children import environment

ROOT = Path(__file__).resolve().parents[2]
ADDED = re.compile(
    r"^ *<!-- adds: (?P<file>\S+), (?P<where>behind|before): (?P<anchor>.*?) -->\n *```\w+\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
SCRIPT = """
import numpy as np
import weft
import weft.language as tl
from weft.ir import parse_module, print_module
from fuzz import compare, operations


@weft.jit
def kernel(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.math.fdim(tl.load(x + i), tl.load(y + i)))


corners = np.array([0.0, -0.0, 1.0, -2.5, 1e-40, 3e38, np.inf, -np.inf, np.nan, 7.0, -7.0, 0.5, 2.0, 3.0, -1.0, 9.0])
x, y = (v.reshape(-1).astype(np.float32) for v in np.meshgrid(corners, corners))
with np.errstate(all="ignore"):
    want = np.where(x <= y, np.float32(0), x - y)
for target in ("cpu", "sim:cuda:80"):
    out = np.zeros_like(x)
    kernel[(1,)](x, y, out, N=256, target=target)
    np.testing.assert_array_equal(out, want)
made = kernel.warmup(x, y, out, N=256, grid=(1,), target="cuda:90")
assert "sub" in made.asm["ptx"] and "tt.fdim" in made.asm["ttir"] and "tt.fdim" in made.asm["lane"]
assert print_module(parse_module(made.asm["ttir"])) == made.asm["ttir"]

operations.OPERATIONS[:] = [(operations.positive_difference, 9), (operations.full, 3), (operations.convert, 3)]
texts = []
for seed in range(6):
    program = compare.generate(seed, compare.VARIANTS["host"])
    texts.append(program.source())
    assert not compare.difference(program, compare.VARIANTS["host"]), texts[-1]
assert any("tl.math.fdim" in text for text in texts)
"""


def _add(tree: Path) -> list[str]:
    """What the page adds, put into a copy of the tree; the files."""
    files = []
    for found in ADDED.finditer((ROOT / "docs" / "howto" / "adding.md").read_text(encoding="utf-8")):
        path, anchor = tree / found["file"], found["anchor"]
        lines = path.read_text(encoding="utf-8").splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith(anchor))
        inside = anchor.endswith(("(", "[", "{"))
        added = textwrap.indent(textwrap.dedent(found["text"]), "    " if inside else "").splitlines()
        at += found["where"] == "behind"
        blank = [] if inside or added[0].startswith("|") else ["", ""]
        lines[at:at] = [*added, *blank]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        files.append(found["file"])
    return files


def test_an_operation_is_five_files(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "weft", tmp_path / "src" / "weft")
    shutil.copytree(ROOT / "tests" / "fuzz", tmp_path / "tests" / "fuzz")
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "reference" / "semantics.md", tmp_path / "docs" / "reference")
    assert len(set(_add(tmp_path))) == 5
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    env = environment(tmp_path / "src", tmp_path / "tests", WEFT_CACHE_DIR=tmp_path / "cache")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert not done.returncode, done.stderr[-3000:]

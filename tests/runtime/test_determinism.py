"""The same kernel makes the same code, whatever the order in which Python goes through a set (G24)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[1] / "data" / "ttir"
SOME_OR_ALL = pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
"""Each eighth file in `make test`, where digests are compared with any seed too; all in `make test-long`."""

SCRIPT = """
import hashlib, pathlib, sys
from weft import compiler
options = {"cpu": "x86-64-v3", "features": "+avx,+avx2,+fma,+f16c"} if sys.argv[1] == "x86_64" else {}
for path in sorted(pathlib.Path(sys.argv[2]).rglob("*.ttir"))[::int(sys.argv[3])]:
    kernel = compiler.compile(compiler.IRSource(path.read_text(), path=path.name), options=options)
    stages = {name: hashlib.sha256(kernel.asm[name].encode()).hexdigest() for name in ("ttir", "llir")}
    print(path.name, stages, hashlib.sha256(kernel.asm["object"]).hexdigest())
"""


def _compile_all(seed: str, directory: Path, every: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, os.uname().machine if hasattr(os, "uname") else "", str(CORPUS), str(every)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout.splitlines()


@SOME_OR_ALL
def test_the_same_kernel_makes_the_same_code(tmp_path: Path, every: int) -> None:
    (tmp_path / "elsewhere").mkdir()
    first, second = _compile_all("0", tmp_path, every), _compile_all("1", tmp_path / "elsewhere", every)
    assert len(first) >= 40 // every
    assert first == second


GPU_SCRIPT = """
import hashlib, pathlib, sys
from weft import compiler
from weft.backends.nvidia.ptxas import find_tool
from weft.base import Unsupported
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.ttir"))[:: 6 * int(sys.argv[2])]:
    for target in ("cuda:80", "cuda:90"):
        try:
            kernel = compiler.compile(compiler.IRSource(path.read_text(), path=path.name), target=target)
        except Unsupported:
            continue
        texts = [kernel.asm[name].encode() for name in ("ttgir", "lane", "llir", "ptx")]
        if find_tool() is not None:
            texts.append(kernel.asm["cubin"])
        print(path.name, target, *(hashlib.sha256(text).hexdigest() for text in texts))
"""


@SOME_OR_ALL
def test_the_same_kernel_makes_the_same_machine_code_of_gpus(tmp_path: Path, every: int) -> None:
    """Two processes, in two folders; PTX, and where there is a ptxas, the bytes of the cubin."""
    found = []
    for seed in ("0", "1"):
        folder = tmp_path / seed
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", GPU_SCRIPT, str(CORPUS), str(every)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TMPDIR": str(folder), "WEFT_CACHE_DIR": str(folder / "cache")},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        found.append(done.stdout.splitlines())
    assert len(found[0]) >= 10 // every
    assert found[0] == found[1]

"""Triton's IR runs here, and ours is accepted by Triton.

`tests/data/ttir` holds what Triton 3.6.0 made of every kernel of tests/kernels, for cuda:90 (see make_ttir.py there).
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from frontend.triton_oracle import negated_by_subtraction
from kernels import load_cases
from kernels.running import our_ttir, run_ir
from one_in import one_in
from weft.ir import parse_module, print_module, verify

HERE = Path(__file__).resolve().parent
FILES = sorted((HERE / "data" / "ttir").glob("*.ttir"))
CASES = load_cases("weft")

ACCEPT = """
import json, sys, tempfile, os
from triton.backends.compiler import GPUTarget
from triton.compiler import compile
failures = {}
for name, text in json.load(open(sys.argv[1])).items():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".ttir")
        with open(path, "w") as file:
            file.write(text)
        try:
            compile(path, target=GPUTarget("cuda", 90, 32))
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}"
print("RESULT" + json.dumps(failures))
"""


def test_there_are_enough_files() -> None:
    assert len(FILES) >= 50


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_tritons_ir_parses_and_verifies(path: Path) -> None:
    module = parse_module(path.read_text(), path.name)
    verify(module)
    again = parse_module(print_module(module), path.name)
    assert print_module(again) == print_module(module)


@pytest.mark.parametrize("path", one_in(3, FILES), ids=[path.stem for path in FILES])
@pytest.mark.thinned(3)
def test_tritons_ir_runs(path: Path) -> None:
    case = CASES[path.stem]
    facts = json.loads(path.with_suffix(".json").read_text())
    types, _, _ = case.signature(case.make_inputs())
    assert facts["signature"] == types, "the case changed: run tests/kernels/make_ttir.py"
    run_ir(case, path.read_text())


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the real Triton is not installed")
@pytest.mark.parametrize("part", range(8))
def test_our_ir_is_accepted_by_triton(part: int, tmp_path: Path) -> None:
    names = sorted(name for name, case in CASES.items() if case.ttir)[part::8]
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps({name: negated_by_subtraction(our_ttir(CASES[name])) for name in names}))
    script = tmp_path / "accept.py"
    script.write_text(ACCEPT)
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_INTERPRET": "0"}
    command = [sys.executable, str(script), str(texts)]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    marked = [line for line in result.stdout.splitlines() if line.startswith("RESULT")]
    assert marked, f"Triton ended with status {result.returncode}:\n{result.stderr[-3000:]}"
    failures = json.loads(marked[0].removeprefix("RESULT"))
    assert not failures, "\n".join(f"{name}: {text[:500]}" for name, text in failures.items())

"""Run the test files of a Triton checkout through Weft, and print a line for each.

    python tools/run_triton_tests.py path/to/python/test
    python tools/run_triton_tests.py path/to/python/test --target sim:cuda:90 --per 20 unit/language/test_core.py
    make triton-tests TESTS=path/to/python/test TARGET=sim:cuda:90 PER=20 JOBS=8

The folder is Triton's `python/test`, of any version; nothing of it is copied.  Without files, all of those for the
target run.  A line reads

    unit/language/test_tuple.py                  61 passed    0 failed    2 skipped    0 left out

where "skipped" is what the tests themselves leave out on the target (or expect to fail), and "left out" counts the test
functions of tools/triton_tests_left_out.txt, each with its reason there.  The exit status is 1 if a file cannot be
imported, or if something failed and --must is given.  The interpreter needs PyTorch, pytest, pytest-xdist, expecttest
and filecheck besides Weft.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

TOOLS = Path(__file__).parent
LEFT_OUT = TOOLS / "triton_tests_left_out.txt"

# fmt: off
LANGUAGE = [
    "annotations", "block_pointer", "compile_errors", "compile_only", "conversions", "core", "decorator", "frontend",
    "libdevice", "line_info", "matmul", "module", "mxfp", "pipeliner", "random", "reproducer", "standard", "subprocess",
    "tensor_descriptor", "tuple", "warp_specialization",
]
RUNTIME = [
    "autotune_listener", "autotuner", "bindings", "blaslt", "build", "cache", "cache_determinism",
    "compilation_listener", "driver", "interpreter", "jit", "launch", "no_torch_dispatch", "specialize", "subproc",
]
TOOLS_FILES = [
    "disasm", "irsource", "linear_layout", "slice_kernel", "stable_toposort", "triton_to_gluon",
]
OTHERS = [
    "debug", "debug_dump", "debuginfo", "filecheck", "knobs", "link", "perf_warning", "stages_inspection", "utils",
]
# fmt: on
FILES = [
    *(f"unit/language/test_{name}.py" for name in LANGUAGE),
    *(f"unit/runtime/test_{name}.py" for name in RUNTIME),
    *(f"unit/tools/test_{name}.py" for name in TOOLS_FILES),
    *(f"unit/test_{name}.py" for name in OTHERS),
]
GLUON = [f"gluon/test_{name}.py" for name in ("core", "frontend", "layout", "layout_format_view", "lowerings")]
SIMULATED = [
    *GLUON,
    "unit/tools/test_aot.py",
    *(f"unit/language/test_{name}.py" for name in ("core", "standard", "tensor_descriptor")),
]


def read_left_out(path: str | Path = LEFT_OUT) -> dict[str, str]:
    """{"unit/language/test_core.py::test_name": reason} from lines "name  reason"; lines with # are comments."""
    lines = [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines()]
    named = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    unexplained = [parts[0] for parts in named if len(parts) < 2]
    if unexplained:
        raise ValueError(f"{path}: {', '.join(unexplained)} has no reason")
    return dict(named)  # type: ignore[arg-type]


def _environment(target: str) -> dict[str, str]:
    """Where Weft is `triton`, in the processes that tests start as well."""
    compat = "import os, weft.compat; print(os.path.join(os.path.dirname(weft.compat.__file__), 'path'))"
    found = subprocess.run([sys.executable, "-c", compat], capture_output=True, text=True, check=True).stdout.strip()
    path = os.pathsep.join([str(TOOLS), found, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "WEFT_TARGET": target}
    if target == "cuda":  # the GPU that PyTorch has
        del environment["WEFT_TARGET"]
    return environment


def _run(file: str, asked: argparse.Namespace, log: Path) -> str:
    """Run one file; what kept it from its end, if anything."""
    command = [sys.executable, "-m", "pytest", "-p", "triton_tests", "-p", "no:cacheprovider", "-q", "--tb=no"]
    command += ["--noconftest", "--import-mode=importlib", "-c", os.devnull, "--rootdir", asked.folder]
    command += ["--left-out", str(LEFT_OUT), "--case-log", str(log)]
    command += ["--per-function", str(asked.per), "--seed", str(asked.seed), "--case-timeout", str(asked.case_timeout)]
    command += ["-n", str(asked.jobs), file]
    try:
        with open(log.with_suffix(".txt"), "w") as output:
            ended = subprocess.run(
                command,
                cwd=asked.folder,
                env=_environment(asked.target),
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=asked.file_timeout,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return "  STOPPED BY --file-timeout"
    return "" if ended.returncode in (0, 1, 5) else f"  ENDED WITH {ended.returncode}"  # passed, failed, no cases


def _outcomes(log: Path) -> Counter[str]:
    """How many cases ended how."""
    cases: dict[str, set[str]] = defaultdict(set)
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            cases[told["case"]].add(told["outcome"])
    order = ("not imported", "failed", "passed")  # a case can pass, and then fail in its fixtures
    return Counter(next((o for o in order if o in outcomes), "skipped") for outcomes in cases.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the files; the exit status."""
    parser = argparse.ArgumentParser(description="Run Triton's own test files through Weft.")
    parser.add_argument("folder", help="python/test of a checkout of Triton")
    parser.add_argument("files", nargs="*", help="relative to it; without any, those for the target")
    parser.add_argument("--target", default="cpu", help="cpu, sim:cuda:90, sim:hip:gfx942, ..., or cuda: PyTorch's GPU")
    parser.add_argument("--per", type=int, default=0, help="at most so many cases of each test function; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="which of them")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0: no more than one")
    parser.add_argument("--case-timeout", type=int, default=120, help="seconds until a case has failed")
    parser.add_argument("--file-timeout", type=int, default=7200, help="seconds until a file is given up")
    parser.add_argument("--out", default="", help="a folder for a line of JSON for each case")
    parser.add_argument("--must", action="store_true", help="exit with 1 if anything fails")
    asked = parser.parse_intermixed_args(arguments)
    files = asked.files or (SIMULATED if asked.target.startswith("sim:") else FILES)
    left_out = read_left_out()
    out = Path(asked.out or tempfile.mkdtemp(prefix="triton-tests-"))
    out.mkdir(parents=True, exist_ok=True)
    together: Counter[str] = Counter()
    for file in files:
        source = Path(asked.folder, file)
        if not source.exists():
            print(f"{file:<46} not in this version", flush=True)
            continue
        log = out / f"{asked.target}-{file}.jsonl".replace("/", "_").replace(":", "_")
        log.unlink(missing_ok=True)
        trouble = _run(file, asked, log)
        counts = _outcomes(log)
        text = source.read_text(encoding="utf-8")
        counts["left out"] = sum(
            name.partition("::")[0] == file and f"def {name.partition('::')[2]}(" in text for name in left_out
        )
        together += counts
        numbers = "".join(f"{counts[kind]:>7} {kind}" for kind in ("passed", "failed", "skipped", "left out"))
        trouble = "  CANNOT BE IMPORTED" if counts["not imported"] else trouble
        print(f"{file:<46}{numbers}{trouble}", flush=True)
    print(f"{'together':<46}" + "".join(f"{together[k]:>7} {k}" for k in ("passed", "failed", "skipped", "left out")))
    print(f"a line of JSON for each case: {out}")
    return int(bool(together["not imported"] or (asked.must and together["failed"])))


if __name__ == "__main__":
    sys.exit(main())

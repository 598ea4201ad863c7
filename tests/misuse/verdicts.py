"""What Triton 3.6.0 and Weft say to each misuse, and where they differ.

    python -m misuse.verdicts --triton PYTHON      ask a Triton 3.6.0 and write refused.txt (minutes)
    python -m misuse.verdicts                      compile all with Weft, and print what differs from the two tables

refused.txt holds, for each call and argument, the values for which Triton makes no tile IR, so that no Triton is needed
to compare. Each difference is a fault, or stands in differences.txt with a reason that docs/reference/semantics.md
gives.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from malformed.judge import LEAKS
from weft import ir
from weft.base import CompilationError, CompileOptions
from weft.frontend import ast_to_ttir

from .cases import CONSTANTS, FOLDER, TYPES, Case, cases, source

TRITON = "import triton.language as tl\nfrom triton import jit\n"
WEFT = "import weft.language as tl\nfrom weft.language.callable import jit\n"
RAW = re.compile(
    rf"{LEAKS.pattern}|unsupported operand|bad operand type|<class '|\bconstexpr\[(?!int|str|float|bool|None)"
    r"|must be a string(?:, a bytes| or a real)|has no len\(\)"
)
"""The words of errors that Python raised inside of Weft, and of Weft's own classes."""
BATCH = 500
SECONDS = 5

OPTIONS = CompileOptions(
    default_dot_input_precision="tf32",
    allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    supported_fp8_dtypes=("fp8e4b15", "fp8e4nv", "fp8e5"),
    deprecated_fp8_dot_operand_dtypes=("fp8e4b15",),
    max_num_imprecise_acc_default=2**30,
)
"""What a compilation for cuda:90 gives the language."""


def batches(chosen: Iterable[Case]) -> Iterator[list[Case]]:
    """Cases in groups that make a module each."""
    listed = list(chosen)
    for start in range(0, len(listed), BATCH):
        yield listed[start : start + BATCH]


def ask_triton(python: str, chosen: Iterable[Case]) -> dict[str, str | None]:
    """Triton's verdict on each case by its key: None, or why it is refused."""
    found: dict[str, str | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for batch in batches(chosen):
            path = Path(folder) / "misuses.py"
            path.write_text(source(TRITON, batch), encoding="utf-8")
            done = 0
            while done < len(batch):
                for number, why in _answers(python, path, done, len(batch)):
                    found[batch[number].key] = why
                    done = number + 1
                if done < len(batch):  # the process ended in this one
                    found[batch[done].key] = "the process ended"
                    done += 1
    return found


def _answers(python: str, path: Path, first: int, last: int) -> Iterator[tuple[int, str | None]]:
    """What the interpreter prints, as far as it gets."""
    command = [python, str(FOLDER / "oracle.py"), str(path), str(first), str(last)]
    command += [json.dumps(TYPES), json.dumps(CONSTANTS)]
    process = subprocess.run(command, capture_output=True, text=True, cwd=path.parent, check=False)
    for line in process.stdout.splitlines():
        if line.startswith("verdict "):
            number, why = json.loads(line.removeprefix("verdict "))
            yield number, why


def _module(text: str, path: Path) -> ModuleType:
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("misuses", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask_weft(chosen: Iterable[Case]) -> dict[str, str | None]:
    """Weft's verdict on each case by its key: None, the message of the error, or `CRASH` and what it is."""
    found: dict[str, str | None] = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for count, batch in enumerate(batches(chosen)):
            module = _module(source(WEFT, batch), Path(folder) / f"misuses{count}.py")
            for number, case in enumerate(batch):
                found[case.key] = weft_verdict(getattr(module, f"k{number}"))
    return found


def weft_verdict(kernel: Any) -> str | None:
    """None if the kernel becomes valid tile IR, else the first line of the error."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(SECONDS)
    try:
        module = ast_to_ttir(kernel, dict(TYPES), dict(CONSTANTS), {}, OPTIONS)
    except CompilationError as error:
        return error.message
    except Exception as error:
        return f"CRASH {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    try:
        ir.verify(module)
    except Exception as error:
        return f"CRASH the verifier found it: {error}"
    return None


def _give_up(*_: object) -> None:
    raise TimeoutError(f"no tile IR within {SECONDS} s")


def write_refused(answers: Mapping[str, str | None]) -> None:
    """refused.txt from Triton's verdicts."""
    refused = []
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases():
        groups.setdefault((case.call, case.argument), []).append(case)
    for (call, argument), group in groups.items():
        refused.append(" ".join([call, argument, *(c.value for c in group if answers[c.key] is not None)]))
    (FOLDER / "refused.txt").write_text("\n".join(refused) + "\n", encoding="utf-8")


def read_refused() -> set[str]:
    """The keys of the cases that Triton refuses."""
    lines = (FOLDER / "refused.txt").read_text(encoding="utf-8").splitlines()
    return {f"{call} {argument} {value}" for call, argument, *rest in map(str.split, lines) for value in rest}


def read_differences() -> dict[str, str]:
    """What Weft does on purpose where Triton does not: `accepts` or `refuses`, by the keys of the cases."""
    lines = (FOLDER / "differences.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" ") for line in lines if line and line[0] != "#"]
    return {f"{call} {argument} {value}": verb for _, verb, call, argument, *rest in rows for value in rest}


def faults(chosen: Iterable[Case]) -> list[str]:
    """Where Weft does something else than the tables say."""
    listed = list(chosen)
    refused, differences, ours = read_refused(), read_differences(), ask_weft(listed)
    found = []
    for case in listed:
        why = ours[case.key]
        wanted = differences.get(case.key, "refuses" if case.key in refused else "accepts")
        if why is not None and why.startswith("CRASH"):
            found.append(f"crash {case.key}\n    {case.code}\n    {why}")
        elif why is not None and (leak := RAW.search(why)):
            found.append(f"leak {case.key}\n    {case.code}\n    {leak[0]!r} in: {why}")
        elif (why is None) != (wanted == "accepts"):
            found.append(f"{'accepted' if why is None else 'refused'} {case.key}\n    {case.code}\n    {why}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triton", help="an interpreter that has Triton 3.6.0: ask it anew")
    parser.add_argument("--call", help="only these calls")
    given = parser.parse_args()
    chosen = [c for c in cases() if given.call in (None, c.call)]
    if given.triton:
        write_refused(ask_triton(given.triton, cases()))
        return 0
    found = faults(chosen)
    print("\n".join([*found, f"{len(chosen)} cases, {len(found)} faults"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

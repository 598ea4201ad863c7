"""One program in Python and in Weft, and the verdict.

PASS          the same numbers
UNSET         Python has no value for a name that is read, or a range has a step of 0: with `debug` Weft says so
MISMATCH      other numbers, or no error where Python has one
REFUSED       Weft does not compile it; right where a name has two types, which only programs that are not plain have
UNSUPPORTED   Weft says that a target cannot do it
CRASH         anything else
"""

from __future__ import annotations

import json
import linecache
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import weft
import weft.language as tl
from ptx.launching import launch
from ptx.spaces import Unknown

from .write import SLOTS, Program

__all__ = ["in_python", "in_triton", "verdict"]


class _Pointer:
    """What Python's run has for a pointer."""

    def __init__(self, memory: list[int], at: int = 0) -> None:
        self.memory, self.at = memory, at

    def __add__(self, offset: int) -> _Pointer:
        return _Pointer(self.memory, self.at + offset)


class _Language:
    """What Python's run has for `tl`."""

    range = range
    static_range = range
    constexpr = int
    int32 = int64 = int

    @staticmethod
    def load(pointer: _Pointer) -> int:
        return pointer.memory[pointer.at]

    @staticmethod
    def store(pointer: _Pointer, value: int) -> None:
        pointer.memory[pointer.at] = int(value)

    @staticmethod
    def program_id(axis: int) -> int:
        return 0

    @staticmethod
    def num_programs(axis: int) -> int:
        return 1

    @staticmethod
    def arange(start: int, end: int) -> Any:
        return np.arange(start, end)

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        return np.where(condition, x, y)

    @staticmethod
    def sum(tile: Any) -> int:
        return int(np.sum(tile))

    @staticmethod
    def cast(value: float, kind: type) -> int:
        return int(value)


def made(program: Program, jit: Callable[[Any], Any], language: Any) -> Any:
    """The kernel of a program, for Weft or for Python."""
    file = f"<flow {program.seed}>"
    linecache.cache[file] = (len(program.text), None, program.text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"jit": jit, "tl": language, "__name__": f"flow_{program.seed}"}
    exec(compile(program.text, file, "exec", dont_inherit=True), space)
    return space["kernel"]


def in_python(program: Program) -> list[int] | str:
    """What Python stores, or why it has nothing to."""
    memory = [-1] * SLOTS
    kernel = made(program, lambda f=None, **options: f or (lambda g: g), _Language)
    try:
        kernel(_Pointer(memory), _Pointer(program.source), *program.arguments, **program.constants)
    except (UnboundLocalError, ValueError, TypeError) as error:  # a number may be a float from the iteration before
        return str(error)
    return memory


def verdict(program: Program, debug: bool, target: str = "cpu") -> tuple[str, str]:
    """What becomes of a program, and what is to be said about it.

    The target `ptx:cuda:90` is what tests/ptx makes of the PTX for cuda:90, which has no checks of `debug`.
    """
    debug = debug and not target.startswith("ptx:")
    expected = in_python(program)
    out, source = np.full(SLOTS, -1, np.int32), np.array(program.source, np.int32)
    try:
        kernel = made(program, weft.jit, tl)
        if target.startswith("ptx:"):
            given = dict(zip(kernel.arg_names, (out, source, *program.arguments), strict=False)) | program.constants
            launch(kernel, (1,), given, target.removeprefix("ptx:"))
        else:
            with weft.target(target):
                kernel[(1,)](out, source, *program.arguments, **program.constants, debug=debug)
    except weft.DeviceAssertionError as error:
        return ("UNSET", "") if isinstance(expected, str) else ("MISMATCH", str(error))
    except (weft.Unsupported, Unknown) as error:
        return "UNSUPPORTED", str(error)
    except weft.CompilationError as error:
        return "REFUSED", str(error)
    except Exception as error:
        return "CRASH", f"{type(error).__name__}: {error}"
    finally:
        linecache.cache.pop(f"<flow {program.seed}>", None)
    if isinstance(expected, str):
        return ("MISMATCH", f"Python says: {expected}") if debug else ("UNSET", "")
    if out.tolist() != expected:
        slots = [f"{k}: {e}, not {v}" for k, (v, e) in enumerate(zip(out.tolist(), expected, strict=True)) if v != e]
        return "MISMATCH", f"Python stores at {'; '.join(slots)}"
    return "PASS", ""


_ASK = """
import json, linecache, sys
sys.path.insert(0, sys.argv[1])
from frontend.triton_oracle import triton_ir_of
import triton, triton.language as tl

answers = []
for number, (text, constants) in enumerate(json.load(sys.stdin)):
    file = f"<flow {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {"jit": triton.jit, "tl": tl, "__name__": f"flow{number}"}
    exec(compile(text, file, "exec", dont_inherit=True), space)
    kernel = space["kernel"]
    names = ("n", "m", "p", "q", "s", "r")
    signature = {"o": "*i32", "x": "*i32", **{k: "i32" for k in names}, "C0": "constexpr", "C1": "constexpr"}
    try:
        triton_ir_of(kernel, signature, {(8,): constants["C0"], (9,): constants["C1"]})
        answers.append("")
    except Exception as error:
        answers.append(f"{type(error).__name__}: {error}"[-300:])
print()
print(json.dumps(answers))
"""


def in_triton(python: str, programs: Sequence[Program]) -> list[str]:
    """Why Triton's frontend refuses programs, empty where it takes them; `python` is an interpreter that has Triton."""
    tests = str(Path(__file__).resolve().parents[2])
    texts = json.dumps([(p.text, p.constants) for p in programs])
    run = subprocess.run([python, "-c", _ASK, tests], input=texts, capture_output=True, text=True, check=True)
    answers: list[str] = json.loads(run.stdout.splitlines()[-1])  # before it Triton may print IR
    return answers

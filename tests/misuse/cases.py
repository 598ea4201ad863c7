"""Misuses of every builtin, generated: valid calls (calls.txt) with one argument replaced by each value (values.txt).

    tl.load pointer=pointers mask=bools         tl.load(pointer=p + tl.arange(0, 16), mask=(n))      mask=int
                                         ->     tl.load(mask=tl.arange(0, 16) < n)                   pointer is missing
                                                tl.load(pointer=..., mask=..., unknown=1)            an argument more

A call is the name of a function and its arguments (with a star: by position), or a template in which `@` stands for a
blank and `@@` for itself. Most replaced calls are wrong and some are right: what Triton takes is data (verdicts.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent

TYPES = {
    "p": "*fp32", "q": "*i32", "c": "*u1", "r": "*kfp32", "n": "i32", "l": "i64", "u": "u32", "s": "i8", "h": "fp16",
    "f": "fp32", "d": "fp64", "b": "u1", "K": "constexpr",
}  # fmt: skip
"""The parameters of every kernel."""
CONSTANTS = {"K": 4}

HELPERS = """
@jit
def added(a, b):
    return a + b

@jit
def negated(a):
    return -a

@jit
def added_pairs(a, b, c, d):
    return a + c, b + d

@jit
def compared(a, b):
    return a > b
"""


@dataclass(frozen=True)
class Case:
    """One call: `argument` of the call number `line` in calls.txt is the value of this name."""

    call: str
    argument: str
    value: str
    code: str

    @property
    def key(self) -> str:
        return f"{self.call} {self.argument} {self.value}"


def _lines(name: str) -> list[str]:
    return [line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]


@cache
def values() -> dict[str, str]:
    """Expressions by name."""
    return {name: text.strip() for name, _, text in (line.partition(" ") for line in _lines("values.txt"))}


def _expression(name: str) -> str:
    text = values().get(name, name)
    return text if re.fullmatch(r"[A-Za-z][\w.]*|\([^()]*\)|\[[^\[\]]*\]|'\w*'", text) else f"({text})"


def _written(head: str, arguments: dict[str, str], more: str = "") -> str:
    """The statement of a call."""
    if "{" in head:
        text = head.replace("@@", "\0").replace("@", " ").replace("\0", " @ ")
        text = text.format(**{name.lstrip("*"): _expression(value) for name, value in arguments.items()})
        return text if text.startswith("for ") else f"r = {text}"
    given = [_expression(v) if name[0] == "*" else f"{name}={_expression(v)}" for name, v in arguments.items()]
    return f"r = {head}({', '.join([*given, *([more] if more else [])])})"


def _call_names() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Each line as its name (with a number where there are several), the head and the arguments."""
    seen: dict[str, int] = {}
    for line in _lines("calls.txt"):
        head, *given = line.split(" ")
        seen[head] = seen.get(head, 0) + 1
        name = head if seen[head] == 1 else f"{head}#{seen[head]}"
        yield name, head, dict(item.split("=", 1) for item in given)


@cache
def cases() -> tuple[Case, ...]:
    """All of them, the valid call of each line first."""
    made = []
    for call, head, arguments in _call_names():
        made.append(Case(call, "-", "valid", _written(head, arguments)))
        for argument in arguments:
            name = argument.lstrip("*")
            for value in values():
                if value != arguments[argument]:
                    made.append(Case(call, name, value, _written(head, {**arguments, argument: value})))
            if "{" not in head:
                less = {k: v for k, v in arguments.items() if k != argument}
                made.append(Case(call, name, "missing", _written(head, less)))
        if "{" not in head:
            made.append(Case(call, "-", "unknown", _written(head, arguments, "unknown=1")))
    return tuple(made)


def source(imports: str, batch: list[Case]) -> str:
    """A module with a kernel for each case: k0, k1, ..."""
    kernels = [f"@jit\ndef k{i}({', '.join(TYPES)}):\n    {case.code}\n" for i, case in enumerate(batch)]
    return f"{imports}{HELPERS}\n" + "\n".join(kernels)

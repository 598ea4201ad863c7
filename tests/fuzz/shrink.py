"""Cutting a failing kernel down: statements go as long as it fails in the same way.

Each try is a process of its own, since a kernel may crash it, lose the GPU, or never end.
"""

from __future__ import annotations

import os
import re
import select
import signal
from collections.abc import Callable
from typing import Any

from .arrays import memories
from .compare import Variant, difference, kind_of
from .program import Program


def reduced(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Take statements away as long as it still fails."""
    changed = True
    while changed:
        changed = False
        for block in _blocks(program.body):
            size = max(1, len(block) // 2)
            while size >= 1:
                start = len(block)
                while start > 0:
                    start = max(0, start - size)
                    cut = block[start : start + size]
                    del block[start : start + size]
                    if fails(program):
                        changed = True
                    else:
                        block[start:start] = cut
                size //= 2
        for block in _blocks(program.body):
            for k, statement in enumerate(list(block)):
                for inner in statement.blocks():  # a loop or branch gives way to its body
                    before = list(block)
                    at = block.index(statement) if statement in block else k
                    block[at : at + 1] = inner
                    if fails(program):
                        changed = True
                        break
                    block[:] = before
    return program


def _blocks(body: list[Any]) -> list[list[Any]]:
    found = [body]
    for statement in body:
        for inner in statement.blocks():
            found += _blocks(inner)
    return found


def interpretable(program: Program) -> bool:
    try:
        memory, _ = memories(program, guarded=False)
        program.interpret(memory)
        return True
    except (KeyError, AttributeError):
        return False


def outcome(program: Program, variant: Variant, patience: float = 60.0) -> str:
    """ "crash", "takes too long", "difference: ...", an exception in a few words, or "" """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.write(writing, f"{_what(program, variant)}\n".encode()[:4000])
        finally:
            os._exit(0)
    os.close(writing)
    in_time = select.select([reading], [], [], patience)[0]
    if not in_time:
        os.kill(child, signal.SIGKILL)
    with open(reading, encoding="utf-8", errors="replace") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return "takes too long" if not in_time else said[:-1] if said else "crash"


def _what(program: Program, variant: Variant) -> str:
    try:
        what = difference(program, variant)
    except Exception as error:
        return kind_of(error)
    return what and f"difference: {what}"


def alike(one: str, other: str) -> bool:
    """Whether two outcomes are the same failure: a difference is one wherever it is."""
    return one == other or (one.startswith("difference") and other.startswith("difference"))


def fails_alike(program: Program, variant: Variant, like: str) -> bool:
    """Whether a cut-down program is valid and still fails in the same way."""
    return interpretable(program) and _well_formed(program) and alike(outcome(program, variant), like)


def _well_formed(program: Program) -> bool:
    """Every name that is read has been given a value on every way there (Python alone would not complain)."""
    names = re.compile(r"\b[vpiks]\d+\b")

    def walk(body: list[Any], known: set[str]) -> bool:
        for statement in body:
            inner = statement.blocks()
            if inner:
                head = next(iter(statement.lines(0)))
                local = set(known)
                if hasattr(statement, "name"):
                    local.add(statement.name)
                if not set(names.findall(head)) <= local:
                    return False
                if not all(walk(b, set(local)) for b in inner):
                    return False
                continue
            for line in statement.text.split("\n"):
                left, _, right = line.partition(" = ")
                if not set(names.findall(right or line)) <= known:
                    return False
                known |= set(names.findall(left)) if right else set()
        return True

    return walk(program.body, {"pid"})

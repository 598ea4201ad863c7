"""Cutting a failing kernel down: statements go as long as it fails in the same way."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from .compare import Variant, difference, kind_of, memories
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


def fails_alike(program: Program, variant: Variant, like: str) -> bool:
    """Whether a cut-down program is valid and still fails in the same way."""
    if not interpretable(program) or not _well_formed(program):
        return False
    if like == "crash":
        child = os.fork()
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                difference(program, variant)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)
    try:
        return difference(program, variant) != "" and like == "difference"
    except Exception as error:
        return kind_of(error) == like


def _well_formed(program: Program) -> bool:
    """Every name that is read has been given a value on every way there (Python alone would not complain)."""
    names = re.compile(r"\b[vpik]\d+\b")

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
            left, _, right = statement.text.partition(" = ")
            if not right:
                if not set(names.findall(statement.text)) <= known:
                    return False
                continue
            if not set(names.findall(right)) <= known:
                return False
            known |= set(names.findall(left))
        return True

    return walk(program.body, {"pid"})

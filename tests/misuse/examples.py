"""Misuses of every public name of `tl` and `gl`: its example with one argument replaced by what it cannot be.

    python -m misuse.examples              run all, and print the faults
    python -m misuse.examples --name sum   only these

Most are refused, some mean something. A refusal is a fault if it is no error of Weft's, says no place in the kernel, or
has the words of an error that Python raised inside of Weft.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import inspect
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.base import CompilationError, CompilerCrash, WeftError
from weft.compiler import ASTSource
from weft.testing import evaluate

from .verdicts import RAW

VALUES = ("None", "'text'", "2.5", "(0, 1, 2)", "()", "[1.5]", "-1", "tl", "tl.float32", "tl.load", "tl.arange(0, 8)")
"""What each argument is replaced by."""


@dataclass(frozen=True)
class Misuse:
    """A call of `evaluate` in the example of a name, with one argument replaced."""

    name: str
    argument: str
    value: str
    line: str
    given: str
    setup: tuple[str, ...] = field(repr=False)

    @property
    def key(self) -> str:
        return f"{self.name} {self.argument} {self.value}"


def _names(module: ModuleType, prefix: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    for name in sorted(vars(module)):
        value = getattr(module, name)
        if name.startswith("_") or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, ModuleType):
            if value.__name__.startswith("weft."):
                yield from _names(value, f"{prefix}.{name}", seen)
        elif callable(value):
            yield f"{prefix}.{name}", value


def misuses(only: str | None = None) -> Iterator[Misuse]:
    """All of them, by name."""
    seen: set[int] = set()
    for name, value in [*_names(tl, "tl", seen), *_names(gl, "gl", seen)]:
        if only is None or only == name.rpartition(".")[2]:
            setup: tuple[str, ...] = ()
            for example in doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""):
                tree = ast.parse(example.source)
                calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "evaluate"]
                for call in calls:
                    given = ", ".join(ast.unparse(k) for k in call.keywords)
                    yield from _replaced(name, _text(call.args[0], setup), given, setup)
                if not calls:
                    setup = (*setup, example.source)


def _text(node: ast.expr, setup: tuple[str, ...]) -> str:
    """The text that an expression of an example is."""
    space: dict[str, Any] = {}
    for source in setup:
        if "@" not in source:
            exec(source, {"np": np, "weft": weft, "tl": tl, "gl": gl, "gluon": gluon}, space)
    return str(eval(ast.unparse(node), space))


def _replaced(name: str, line: str, given: str, setup: tuple[str, ...]) -> Iterator[Misuse]:
    last = name.rpartition(".")[2]
    for at, call in enumerate(ast.walk(ast.parse(line))):
        if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] != last:
            continue
        for number in range(len(call.args) + len(call.keywords)):
            for value in VALUES:
                tree = ast.parse(line)
                copy: Any = list(ast.walk(tree))[at]
                keywords = number - len(call.args)
                new = ast.parse(value, mode="eval").body
                if keywords < 0:
                    copy.args[number] = new
                else:
                    copy.keywords[keywords].value = new
                argument = str(number) if keywords < 0 else str(call.keywords[keywords].arg)
                yield Misuse(name, argument, value, ast.unparse(tree).replace("\n", "; "), given, setup)


class Traced(BaseException):
    """The frontend has taken a kernel: nothing more is made of it."""


make_ir = ASTSource.make_ir


def only_traced(source: ASTSource, *args: Any, **kwargs: Any) -> Any:
    """Stands for `ASTSource.make_ir`."""
    make_ir(source, *args, **kwargs)
    raise Traced


def fault(misuse: Misuse) -> str | None:
    """What is wrong with what the frontend says to a misuse; None if nothing is."""
    space = {"np": np, "weft": weft, "tl": tl, "gl": gl, "gluon": gluon, "evaluate": evaluate}
    for source in misuse.setup:
        exec(source, space)
    try:
        with warnings.catch_warnings(), patch.object(ASTSource, "make_ir", only_traced):
            warnings.simplefilter("ignore")
            eval(f"evaluate({misuse.line!r}{', ' if misuse.given else ''}{misuse.given})", space)
    except Traced:
        return None
    except CompilerCrash as error:
        return f"crash: {error.message}"
    except CompilationError as error:
        leak = RAW.search(str(error))
        return "it says no place" if error.span is None else f"{leak[0]!r} in: {error}" if leak else None
    except WeftError as error:
        leak = RAW.search(str(error))
        return f"{leak[0]!r} in: {error}" if leak else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", help="only this one")
    count = bad = 0
    for misuse in misuses(parser.parse_args().name):
        count += 1
        why = fault(misuse)
        if why is not None:
            bad += 1
            print(f"{misuse.key}\n    {misuse.line}\n    {why}", flush=True)
    print(f"{count} misuses, {bad} faults")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())

"""Under the name `triton`, errors also say their place and cause as Triton does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import weft.compat
weft.compat.install()
import triton
import triton.language as tl


def decorated():
    @triton.jit
    def kernel(N: tl.constexpr):
        x = tl.arange(0, 8)
        y = tl.arange(2, N)

    return kernel


try:
    triton.compile(triton.compiler.ASTSource(fn=decorated(), signature={"N": "constexpr"}, constexprs={"N": 7}))
except triton.CompilationError as error:
    print(error)
    print(repr(error.__cause__))
    print(error.rendered == "\\n".join(str(error).splitlines()[:-2]))
"""


def test_place_and_cause(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    message = "arange's range must be a power of 2"
    assert done.stdout.splitlines() == [
        f"{path}:12:13: error: {message}",
        "   12 |         y = tl.arange(2, N)",
        "      |             ^^^^^^^^^^^^^^^",
        "hint: it is 5; the nearest are 4 and 8: mask the rest",
        "at 3:8: in kernel",
        message,
        f'ValueError("{message}")',
        "True",
    ]


NESTED = """
import weft.compat
weft.compat.install()
import triton
import triton.language as tl


@triton.jit
def inner(n):
    if n > 0:
        return missing
    return n


@triton.jit
def outer(n):
    inner(n)


@triton.jit
def asserting(n):
    tl.static_assert(1 > 2)


for kernel in (outer, asserting):
    try:
        triton.compile(triton.compiler.ASTSource(fn=kernel, signature={"n": "i32"}, constexprs={}))
    except triton.CompilationError as error:
        print(type(error).__name__, [line for line in str(error).splitlines() if line.startswith("at ")])
        cause = error.__cause__
        print(str(cause).splitlines()[-1], repr(cause and cause.__cause__))
"""


def test_places_of_calls(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(NESTED, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "CompilationError ['at 3:15: in inner', 'at 2:4: in outer']",
        "missing is not defined NameError('missing is not defined')",
        "CompileTimeAssertionFailure ['at 2:4: in asserting']",
        "None None",
    ]


WORDS = """
import numpy as np
import weft.compat
weft.compat.install()
import triton
import triton.language as tl


@triton.jit
def wrong(x):
    tl.store(x, tl.relu(1.0))


@triton.jit
def right(x):
    tl.store(x, 1.0)


for kernel, grid in ((wrong, (1,)), (right, (1.5,))):
    try:
        kernel[grid](np.zeros(1, np.float32))
    except (TypeError, triton.CompilationError) as error:
        print(error)
weft.compat.uninstall()
print(weft.base.LaunchError("", hint="weft.cdiv"))
"""


def test_hints_name_what_the_program_imports(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(WORDS, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"{path}:11:17: error: module `triton.language` has no attribute `relu`",
        "   11 |     tl.store(x, tl.relu(1.0))",
        "      |                 ^^^^^^^",
        "hint: the functions of the language are listed by dir(tl)",
        "at 2:16: in wrong",
        "module `triton.language` has no attribute `relu`",
        "grid sizes are integers, got 1.5 of type float on axis 0",
        "hint: use triton.cdiv(n, BLOCK), or // instead of /",
        "",
        "hint: weft.cdiv",
    ]

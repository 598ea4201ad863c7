"""What a user may get wrong before a kernel runs, and that it is told in one of Weft's errors: never an assertion, a
signal, or an exception of another library.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import CompilationError, LaunchError, WeftError, knobs
from weft.base import DefinitionError, LaunchOverflowError, LaunchTypeError


@weft.jit
def fill(out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, i.to(tl.float32), mask=i < n)


@weft.jit
def add_one(desc):
    desc.store([0, 0], desc.load([0, 0]) + 1)


def _array() -> np.ndarray[Any, Any]:
    return np.zeros(64, np.float32)


def _compiled() -> Any:
    return fill.warmup(_array(), 4, N=4, grid=(1,))


def _source(**signature: Any) -> Any:
    types = {"out": "*fp32", "n": "i32", "N": "constexpr", **signature}
    return weft.ASTSource(fill, types, {"N": 4})


CASES: dict[str, tuple[Callable[[], Any], type[WeftError], str]] = {
    "a tile without elements left over": (
        lambda: fill[(1,)](_array(), 4, N=3),
        CompilationError,
        "it is 3; the nearest are 2 and 4: mask the rest",
    ),
    "None for an array": (
        lambda: fill[(1,)](None, 4, N=4),
        CompilationError,
        "hint: the argument `out` is None in this call: give it, or use it only under `if out is not None:`",
    ),
    "an option that is misspelled": (
        lambda: fill[(1,)](_array(), 4, N=4, num_warp=4),
        LaunchError,
        "Keyword argument num_warp was specified but unrecognised\nhint: did you mean `num_warps`?",
    ),
    "a grid function without a parameter": (
        lambda: fill[lambda: (1,)](_array(), 4, N=4),
        LaunchTypeError,
        "a function that cannot be called with the arguments of the launch: <lambda>.<locals>.<lambda>() takes 0",
    ),
    "jit of a number": (lambda: weft.jit(5)[(1,)](), DefinitionError, "jit needs a Python function, got 5 of type int"),  # type: ignore[call-overload]
    "jit of a builtin": (lambda: weft.jit(len)[(1,)](), DefinitionError, "jit needs a Python function"),
    "jit of a lambda": (lambda: weft.jit(lambda x: x)[(1,)](), DefinitionError, "defined with `def`, got a lambda"),
    "compiling None": (lambda: weft.compile(None), LaunchTypeError, "compile takes an ASTSource"),
    "compiling a kernel": (lambda: weft.compile(fill), LaunchTypeError, "hint: for a kernel, weft.ASTSource("),
    "an unknown type": (lambda: _source(out="*foo"), CompilationError, "parameter `out` of fill: unknown type 'foo'"),
    "a number as a type": (lambda: _source(n=5), CompilationError, "`n` of fill: expected the name of a type, got 5"),
    "warps as text": (lambda: fill[(1,)](_array(), 4, N=4, num_warps="4"), LaunchError, "num_warps must be"),
    "an unknown precision": (
        lambda: fill[(1,)](_array(), 4, N=4, default_dot_input_precision="tf16"),
        LaunchError,
        "must be one of ieee, tf32, tf32x3, bf16x3, bf16x6, got 'tf16'",
    ),
    "a vector of 77 bits": (lambda: fill[(1,)](_array(), 4, N=4, vector_bits=77), LaunchError, "vector_bits must be"),
    "an option of another kind": (
        lambda: fill[(1,)](_array(), 4, N=4, unroll_budget="much"),
        LaunchTypeError,
        "unroll_budget must be an integer, got 'much'",
    ),
    "a system of no processor": (
        lambda: fill[(1,)](_array(), 4, N=4, triple="aarch64-unknown-linux-gnu"),
        LaunchError,
        "give cpu as well",
    ),
    "an unknown target": (lambda: weft.target("cuda:70").__enter__(), WeftError, "targets that exist: cpu"),
    "a compiled kernel, None": (
        lambda: _compiled()[(1,)](None, 4, 4),
        LaunchTypeError,
        "must be an array, got a NoneType",
    ),
    "a compiled kernel, a number": (lambda: _compiled()[(1,)](5, 4, 4), LaunchTypeError, "must be an array, got a int"),
    "a compiled kernel, a text": (lambda: _compiled()[(1,)](_array(), "4", 4), LaunchTypeError, "must be an integer"),
    "a compiled kernel, a large number": (
        lambda: _compiled()[(1,)](_array(), 1 << 40, 4),
        LaunchOverflowError,
        "`n` is 1099511627776, which does not fit its type i32",
    ),
    "a compiled kernel, too few": (lambda: _compiled()[(1,)](_array()), LaunchTypeError, "takes 3 arguments, 1 were"),
    "a compiled kernel, four axes": (
        lambda: _compiled()[(1, 2, 3, 4)](_array(), 4, 4),
        LaunchError,
        "1 to 3 dimensions",
    ),
    "threads as text": (lambda: setattr(knobs.weft, "num_threads", "a"), LaunchTypeError, "is an integer, got 'a'"),
    "no threads": (lambda: setattr(knobs.weft, "num_threads", -3), LaunchError, "must be at least 1, got -3"),
    "a limit as text": (lambda: setattr(knobs.weft, "scratch_limit", "1G"), LaunchTypeError, "is an integer, got '1G'"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str) -> None:
    call, kind, says = CASES[case]
    with pytest.raises(kind) as caught:
        call()
    assert says in str(caught.value)


def test_a_descriptor_that_lost_its_array() -> None:
    descriptor = weft.TensorDescriptor(_array(), [8, 8], [8, 1], [4, 4])
    add_one[(1,)](descriptor)
    descriptor.base = None
    with pytest.raises(LaunchError, match="base of a tensor descriptor must be an array, got NoneType"):
        add_one[(1,)](descriptor)


@pytest.mark.parametrize("options", [{"cpu": "zz"}, {"cpu": "x86-64", "features": "+zz"}])
def test_an_unknown_processor_is_an_error_and_no_abort(options: dict[str, str]) -> None:
    with pytest.raises(LaunchError, match="zz' is not a recognized") as caught:
        fill[(1,)](_array(), 4, N=4, **options)
    assert caught.value.hint is not None


KERNEL = """
import numpy as np
import weft, weft.language as tl

@weft.jit
def kernel(out):
    tl.store(out, missing)

kernel[(1,)](np.zeros(1, np.float32))
"""


@pytest.mark.parametrize("flags", [["-O"], ["-m", "weft", "run"]])
def test_a_script(tmp_path: Path, flags: list[str]) -> None:
    script = tmp_path / "k.py"
    script.write_text(KERNEL)
    done = subprocess.run(
        [sys.executable, *flags, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Traceback (most recent call last):\n"
        f'  File "{script}", line 9, in <module>\n'
        "    kernel[(1,)](np.zeros(1, np.float32))\n"
        f"weft.CompilationError: {script}:7:19: error: missing is not defined\n"
        "    7 |     tl.store(out, missing)\n"
        "      |                   ^^^^^^^\n"
        "hint: assign `missing` first, make it a parameter, or a global, `missing = tl.constexpr(...)`\n"
    )


def test_a_kernel_without_a_file() -> None:
    done = subprocess.run([sys.executable, "-"], input=KERNEL, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert (
        "DefinitionError: error: cannot find the source of kernel (<stdin>:5). A jit function must be in a file or "
        "a notebook cell; what Python read through a pipe is gone when it is decorated." in done.stderr
    )


DOUBLE = """
import weft
import weft.language as tl
import numpy as np

@weft.jit
def double(x):
    i = tl.arange(0, 4)
    tl.store(x + i, tl.load(x + i) * 2)

x = np.ones(4, np.float32)
double[(1,)](x)
print(x)
"""


@pytest.mark.slow
def test_kernels_without_a_file_that_keep_their_source(tmp_path: Path) -> None:
    """Of `-c`, of exec() in a function that holds the text or names its file, and of a file that is standard input."""
    script = tmp_path / "k.py"
    script.write_text(DOUBLE)
    executes = f"def run(task):\n    exec(task['code'], {{}})\n\nrun({{'code': {DOUBLE!r}}})"
    (tmp_path / "executes.py").write_text(executes)
    (tmp_path / "reads.py").write_text("exec(open('k.py').read(), {})")
    with script.open() as file:
        ways: list[list[str]] = [["-Bc", DOUBLE], ["executes.py"], ["reads.py"], []]
        for arguments in ways:
            command = [sys.executable, *arguments]
            given = None if arguments else file
            done = subprocess.run(command, stdin=given, capture_output=True, text=True, timeout=120, cwd=tmp_path)
            assert done.stdout == "[2. 2. 2. 2.]\n", done.stderr


def test_a_kernel_of_a_notebook_cell() -> None:
    """What IPython does: the source of a cell is put into linecache under a name that is no file."""
    cell = "\n".join(
        (
            "import linecache",
            f"source = {KERNEL!r}",
            "name = '<ipython-input-1-abc>'",
            "linecache.cache[name] = (len(source), None, source.splitlines(True), name)",
            "exec(compile(source, name, 'exec'), {'__name__': '__main__'})",
        )
    )
    done = subprocess.run([sys.executable, "-c", cell], capture_output=True, text=True, timeout=120, check=False)
    assert (
        "<ipython-input-1-abc>:7:19: error: missing is not defined\n    7 |     tl.store(out, missing)\n" in done.stderr
    )

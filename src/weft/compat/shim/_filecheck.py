"""triton._filecheck: a kernel's IR as its tracer makes it, and its comments as a test of that IR.

    module = run_parser(kernel, args=(MockTensor(tl.float32), 128), target=GPUTarget("cuda", 90, 32))
    assert "tt.load" in module.str_nodebug()

The IR is Weft's: every function that a kernel calls is traced in its place, so there is no `tt.call` but of functions
that say `noinline`.  `run_filecheck_test` reads the comments by the package `filecheck`.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.base import WeftError
from weft.compiler import ASTSource, GPUTarget, as_target, make_options
from weft.ir import print_module, verify
from weft.runtime.specialize import signature_of

stub_target = GPUTarget("cuda", 100, 32)
"""The target that kernels are traced for if a test names none."""


class MatchError(ValueError):
    """IR that is not as the comments say."""

    def __init__(self, message: str, module_str: str) -> None:
        super().__init__(message)
        self.module_str = module_str

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.module_str}"


class ParsedModule:
    """A traced kernel, as the tests of Triton's frontend look at it."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def str_nodebug(self) -> str:
        """Its text, without places in the source."""
        return print_module(self.module)

    __str__ = str_nodebug

    def verify(self) -> bool:
        """Is it well formed?  An error says why not."""
        verify(self.module)
        return True


def run_parser(
    kernel_fn: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, target: Any = stub_target
) -> ParsedModule:
    """Trace a kernel for arguments (`MockTensor` stands for an array) and options; nothing more is compiled."""
    values, options = kernel_fn._bind(*args, **(kwargs or {}))
    parsed = kernel_fn._options(options, values)
    signature, constants, attributes = signature_of(
        kernel_fn.arg_names, kernel_fn._specialization(values), list(values)
    )
    source = ASTSource(kernel_fn, signature, constants, attributes)
    machine = target if isinstance(target, GPUTarget) else as_target(target)  # any: what is traced is only traced
    return ParsedModule(source.make_ir(make_options(parsed).language, machine))


def run_filecheck(name: str, module_str: str, check_template: str) -> None:
    """Compare a text with the `CHECK` comments of a template; MatchError where it is otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder, name)
        template.write_text(check_template, encoding="utf-8")
        command = [sys.executable, "-m", "filecheck", str(template)]
        done = subprocess.run(command, input=module_str, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MatchError(done.stderr or done.stdout, module_str)


def run_filecheck_test(
    kernel_fn: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, target: Any = stub_target
) -> None:
    """Trace a kernel and compare its IR with the comments in it."""
    module = run_parser(kernel_fn, args, kwargs, target)
    run_filecheck(kernel_fn.__name__, module.str_nodebug(), inspect.getsource(kernel_fn.fn))


def filecheck_test(fn: Any) -> Callable[[], None]:
    """Decorator: a kernel without parameters becomes a test of its IR."""

    @functools.wraps(fn)
    def test_fn() -> None:
        if not hasattr(fn, "_bind"):
            raise WeftError(f"filecheck_test is for kernels, got {fn!r}: put @triton.jit under it")
        run_filecheck_test(fn)

    return test_fn

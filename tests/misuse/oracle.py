"""Triton's verdicts on cases, printed one a line as JSON; run by its own interpreter (see verdicts.py).

    python oracle.py module.py 0 500        kernels k0 ... k499 of a module

A line is `verdict [number, null]` where Triton makes tile IR of the kernel, else with the kind and the first line
of the error. Triton's own checks can end the process: whoever reads goes on after the last line.
"""

from __future__ import annotations

import importlib.util
import json
import signal
import sys
import warnings
from typing import Any

SECONDS = 5
"""After so long a kernel counts as refused: a loop unrolled 2**40 times."""


def verdict(kernel: Any, types: dict[str, str], constants: dict[str, Any], backend: Any, options: Any) -> str | None:
    """None if the kernel becomes tile IR, else why not."""
    from triton._C.libtriton import ir
    from triton.compiler import ASTSource

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = ASTSource(kernel, types, {(list(types).index(k),): v for k, v in constants.items()})
    codegen = backend.get_codegen_implementation(options)
    signal.alarm(SECONDS)
    try:
        source.make_ir(backend.target, options, codegen, backend.get_module_map(), context)
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        text = str(cause) if cause is not error else str(error).rpartition("\n")[2] or str(error)
        return f"{type(cause).__name__}: {(text or '').splitlines()[0] if text else ''}"
    finally:
        signal.alarm(0)
    return None


def _give_up(*_: object) -> None:
    raise TimeoutError(f"no tile IR within {SECONDS} s")


def main(path: str, first: int, last: int, types: dict[str, str], constants: dict[str, Any]) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _give_up)
    spec = importlib.util.spec_from_file_location("misuses", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    backend = make_backend(GPUTarget("cuda", 90, 32))
    options = backend.parse_options({"sanitize_overflow": False})
    for number in range(first, last):
        found = verdict(getattr(module, f"k{number}"), types, constants, backend, options)
        print("\nverdict", json.dumps([number, found]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]), json.loads(sys.argv[5]))

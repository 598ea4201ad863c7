"""`python -m weft run script.py args...`: a script written for Triton, run on Weft."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from collections.abc import Sequence
from types import TracebackType

from weft.base.frames import shows_all

from .finder import install


def module_exists(name: str) -> bool:
    """Whether `run_script(name, module=True)` would find a module; imports its packages, as Python does for that."""
    install()
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return False
        raise  # a package of its own imports what is not there
    finally:
        sys.path.pop(0)


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an error that ended the script as `python script.py` would, without the frames of `weft run` before it."""
    if not shows_all():
        while trace is not None and trace.tb_frame.f_code is not run_script.__code__:
            trace = trace.tb_next
        while trace is not None and trace.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
            trace = trace.tb_next
        if error.__cause__ is not None and error.__cause__.__traceback__ is None:  # made up for programs
            error.__cause__ = None
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


def run_script(arguments: Sequence[str], *, module: bool = False) -> None:
    """Run a script (or with `module`, a module by name) as `__main__`, with `import triton` finding Weft."""
    install()
    sys.excepthook = _show
    name = arguments[0]
    sys.argv = list(arguments)
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
    runpy.run_path(name, run_name="__main__")

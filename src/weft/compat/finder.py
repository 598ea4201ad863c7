"""The import hook: every module of the name `triton` or below it is one of Weft's.

    triton                        weft.compat.shim
    triton.runtime.jit            weft.compat.shim.runtime.jit
    triton.language.core          weft.language.core         the same object: there is one language

A module found this way is the very module of Weft, under a second name in `sys.modules`.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.base import CompilationError, WeftError, load
from weft.frontend import place_in_function
from weft.language.dtypes import dtype
from weft.runtime import compiling, knobs

from .absent import MODULES, add_names, make_module

__all__ = ["VERSION", "install", "installed", "uninstall"]

VERSION = "3.6.0"
"""The version of Triton whose names and meaning these are."""

PATH = str(Path(__file__).parent / "path")
"""A directory whose package `triton` is Weft: processes that get this one's `sys.path` find it there."""

# The longest prefix counts.
ALIASES = {
    "triton": "weft.compat.shim",
    "triton.language": "weft.language",
    "triton.language.extra.cuda.libdevice": "weft.language.extra.libdevice",
    "triton.language.extra.hip.libdevice": "weft.language.extra.libdevice",
    "triton.language.extra.cuda.gdc": "weft.language.extra.cuda.functions",
    "triton.language.extra.cuda.utils": "weft.language.extra.cuda.functions",
    "triton.experimental": "weft.compat.shim.experimental",
    "triton.experimental.gluon": "weft.gluon",
    "triton.experimental.gluon._runtime": "weft.runtime.gluon",
    "triton.experimental.gluon.language._layouts": "weft.gluon.language.layouts",
    "triton.experimental.gluon.language._semantic": "weft.gluon.semantic",
    "triton.knobs": "weft.runtime.knobs",
    "triton.testing": "weft.runtime.testing",
    "triton.runtime.autotuner": "weft.runtime.autotuner",
    "triton.runtime.driver": "weft.runtime.drivers",
    "triton.runtime._allocation": "weft.runtime.allocation",
    "triton.runtime._async_compile": "weft.runtime.futures",
    "triton.runtime.errors": "weft.runtime.errors",
    "triton.errors": "weft.runtime.errors",
    "triton.compiler.errors": "weft.runtime.errors",
}

# Parts of Triton that Weft has nothing for, and what to say of them.
ABSENT = {
    "triton._C": "Triton's compiled library",
    "triton.profiler": "the profiler Proton",
    "triton.interpreter": "Triton's interpreter",
}


def _target(name: str) -> str:
    """The module of Weft that a name of Triton stands for."""
    prefix = name
    while prefix not in ALIASES:
        prefix = prefix.rpartition(".")[0]
    return ALIASES[prefix] + name[len(prefix) :]


def _found(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:  # nor is there its package
        return None


class _AliasLoader(Loader):
    """Gives a module that exists under another name."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._kept: dict[str, Any] = {}

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        add_names(module, spec.name)
        for child in MODULES:
            package, _, name = child.rpartition(".")
            if package != spec.name:
                continue
            attribute = vars(module).get(name)
            if isinstance(attribute, ModuleType):  # not imported by its name: `from triton._C.libtriton import ir`
                add_names(attribute, child)
            elif _found(_target(child)) is None:  # `from triton.runtime import build` finds it
                setattr(module, name, sys.modules.setdefault(child, make_module(child)))
        self._kept = {
            name: getattr(module, name, None) for name in ("__spec__", "__loader__", "__package__", "__path__")
        }
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has written the alias's facts into the module; it keeps its own.
        for name, value in self._kept.items():
            if value is not None:
                setattr(module, name, value)
        if self.target == "weft.compat.shim.runtime":
            # `triton.runtime.driver` is both a module and, as an attribute, the object in it. A module that is known
            # already is not bound to its parent again, so the attribute stays what it is.
            drivers = sys.modules.setdefault("triton.runtime.driver", load("weft.runtime.drivers"))
            add_names(drivers, "triton.runtime.driver")


class _AbsentLoader(Loader):
    """Gives a module of Triton's that Weft has nothing for."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return make_module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Its names are there."""


class _Distribution(Distribution):
    """What `importlib.metadata.version("triton")` finds."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: triton\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"triton is provided by weft; it has no file {path}")


class _Finder(MetaPathFinder):
    """Answers for `triton` and everything below it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "triton" and not name.startswith("triton."):
            return None
        where = _target(name)
        weft_spec = _found(where)
        if weft_spec is None and name in MODULES:
            return ModuleSpec(name, _AbsentLoader(), is_package=True)
        if weft_spec is None:
            for absent, owner in ABSENT.items():
                if name == absent or name.startswith(absent + "."):
                    raise ModuleNotFoundError(
                        f"{name} does not exist: Weft, which runs as triton here, has no {owner}", name=name
                    )
            return None
        spec = ModuleSpec(name, _AliasLoader(where), is_package=weft_spec.submodule_search_locations is not None)
        spec.origin = weft_spec.origin
        return spec

    def find_distributions(self, context: Any = DistributionFinder.Context()) -> Iterable[Distribution]:  # noqa: B008
        return [_Distribution()] if context.name == "triton" else []


_finder = _Finder()


def _in_names_of_triton(hint: str) -> str:
    """A hint with what it names as a user of Triton knows it: `weft.cdiv` is `triton.cdiv`."""
    hint = hint.replace("weft.gluon.language", "triton.experimental.gluon.language")
    hint = hint.replace("weft.language", "triton.language")
    return re.sub(r"\bweft\.(?=(?:cdiv|next_power_of_2|Config|autotune|heuristics|jit)\b)", "triton.", hint)


def installed() -> bool:
    """Does `import triton` find Weft?"""
    return _finder in sys.meta_path


def install(*, replace: bool = False) -> None:
    """Make `import triton` find Weft, from now on, in this process and in those that it hands its `sys.path` to.

    Those are the processes that PyTorch compiles kernels in and that `multiprocessing` spawns; a program that is
    started by itself finds what is installed.

    Where the real Triton is imported already, this is an error: modules that use it would keep it.  `replace=True`
    lets `import triton` find Weft all the same from now on.
    """
    if installed():
        return
    loaded = sys.modules.get("triton")
    if loaded is not None:
        if not replace:
            raise WeftError(
                f"triton is imported already, from {getattr(loaded, '__file__', '?')}: call weft.compat.install() "
                "before anything imports triton, or install(replace=True) to use Weft from here on"
            )
        _forget()
    sys.meta_path.insert(0, _finder)
    if PATH not in sys.path:
        sys.path.insert(0, PATH)
    knobs.go_by_triton(True)
    dtype.package = "triton.language"
    CompilationError.also_at = place_in_function
    WeftError.as_told = staticmethod(_in_names_of_triton)
    compiling.as_triton = True


def uninstall() -> None:
    """Undo `install`; modules that imported Weft as triton keep it."""
    if installed():
        sys.meta_path.remove(_finder)
        if PATH in sys.path:
            sys.path.remove(PATH)
        _forget()
        knobs.go_by_triton(False)
        dtype.package = "weft.language"
        CompilationError.also_at = None
        WeftError.as_told = staticmethod(str)
        compiling.as_triton = False


def _forget() -> None:
    for name in [n for n in sys.modules if n == "triton" or n.startswith("triton.")]:
        del sys.modules[name]

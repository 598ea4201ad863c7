"""Load the kernel files with either Weft or the real Triton under the name `triton`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .case import Case

FAMILIES = ("elementwise", "reduction", "control", "matmul", "memory", "shape", "attention")
_HERE = Path(__file__).parent
_loaded: dict[str, dict[str, Case]] = {}


@contextmanager
def provider(name: str) -> Iterator[None]:
    """Inside the block `import triton` gives Weft or the real Triton; outside, whatever it gave before."""
    if name not in ("weft", "triton"):
        raise ValueError(f"unknown provider {name!r}")
    if name == "triton":
        importlib.import_module("triton.language")
        yield
        return
    compat = importlib.import_module("weft.compat")
    saved = {key: module for key, module in sys.modules.items() if key == "triton" or key.startswith("triton.")}
    for key in saved:
        del sys.modules[key]
    compat.install()
    try:
        yield
    finally:
        compat.uninstall()
        for key in [key for key in sys.modules if key == "triton" or key.startswith("triton.")]:
            del sys.modules[key]
        sys.modules.update(saved)


def load_cases(name: str) -> dict[str, Case]:
    """Every case by name, its kernel made by the named provider ("weft" or "triton")."""
    if name not in _loaded:
        with provider(name):
            cases: dict[str, Case] = {}
            for family in FAMILIES:
                for case in _load_family(name, family).CASES:
                    if case.name in cases:
                        raise ValueError(f"two cases are called {case.name!r}")
                    cases[case.name] = case
        _loaded[name] = cases
    return _loaded[name]


def _load_family(name: str, family: str) -> ModuleType:
    package = __package__ or "kernels"
    qualified = f"{package}.{family}" if name == "weft" else f"{package}.{family}__{name}"
    spec = importlib.util.spec_from_file_location(qualified, _HERE / f"{family}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[qualified] = module
    spec.loader.exec_module(module)
    return module

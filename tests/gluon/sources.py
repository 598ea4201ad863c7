"""Gluon kernels of these tests, as Weft's or as Triton's: their files say `from triton.experimental import gluon`.

for source in sources("weft"): ...           # or "triton": the real one, where it is installed
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from weft.base import CompileOptions
from weft.compiler import ASTSource, GPUTarget
from weft.frontend import ast_to_ttir

__all__ = ["Source", "Sources", "load", "options_of", "sources", "traced"]

HERE = Path(__file__).resolve().parent
FILES = (*sorted((HERE / "kernels").glob("*.py")), HERE.parent / "kernels" / "gluon_sources.py")


@dataclass(frozen=True)
class Source:
    """A kernel, the types of its arguments, its compile-time values, and what it is compiled for."""

    kernel: Any
    signature: dict[str, Any]
    constexprs: dict[str, Any] = field(default_factory=dict)
    capability: int = 80
    options: dict[str, Any] = field(default_factory=dict)


class Sources(dict[str, Source]):
    """The kernels of a file; called, a decorator that keeps one: `types` are those of its arguments."""

    def __call__(
        self,
        capability: int = 80,
        *,
        constexprs: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        **types: Any,
    ) -> Callable[[Any], Any]:
        def keep(kernel: Any) -> Any:
            assert kernel.__name__ not in self, f"two kernels are called {kernel.__name__}"
            self[kernel.__name__] = Source(kernel, types, constexprs or {}, capability, options or {})
            return kernel

        return keep


def load(path: Path, provider: str) -> ModuleType:
    """A file of kernels as a module, with Weft or with Triton under the name `triton`."""
    name = f"{provider}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    text = path.read_text(encoding="utf-8")
    if provider == "weft":
        text = text.replace("from triton.experimental import gluon", "from weft import gluon")
        text = text.replace("triton.experimental.gluon", "weft.gluon").replace(
            "from triton.language", "from weft.language"
        )
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def sources(provider: str) -> dict[str, Source]:
    """All kernels by name."""
    found: dict[str, Source] = {}
    for path in FILES:
        for name, source in load(path, provider).SOURCES.items():
            assert name not in found, f"two kernels are called {name}"
            found[name] = source
    return found


def options_of(source: Source) -> CompileOptions:
    """What Triton's compilations for NVIDIA tell the language."""
    return CompileOptions(
        default_dot_input_precision="tf32",
        max_num_imprecise_acc_default=2**30 if source.capability >= 90 else 0,
        **source.options,
    )


def arguments_of(source: Source) -> tuple[dict[str, Any], dict[tuple[int, ...], list[list[Any]]]]:
    """(signature, attributes): pointers are divisible by 16, and integers of a type that says so, `i32:16`."""
    kinds = {name: kind.removesuffix(":16") for name, kind in source.signature.items()}
    signature = {**kinds, **dict.fromkeys(source.constexprs, "constexpr")}
    known = [i for i, kind in enumerate(source.signature.values()) if kind.startswith("*") or kind.endswith(":16")]
    return signature, {(i,): [["tt.divisibility", 16]] for i in known}


def traced(source: Source) -> Any:
    """The layout IR of a kernel of Weft's, as the frontend makes it."""
    signature, attributes = arguments_of(source)
    target = GPUTarget("cuda", source.capability, 32)
    made = ASTSource(source.kernel, signature, source.constexprs, attributes)
    return ast_to_ttir(made.fn, made.signature, made.constants, made.attrs, options_of(source), target)

"""Functions that exist on one kind of GPU: on any other target a call says so."""

from __future__ import annotations

import inspect
from typing import Any

from weft.base import Unsupported

from ..protocol import builtin_named

__all__ = ["gpu_only"]


def gpu_only(module: str, name: str, works_on: str, *parameters: str) -> Any:
    """A builtin `name` of `module` that is refused with the name of the target."""

    def function(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        raise Unsupported(f"{module}.{name}", getattr(_semantic, "target", "cpu"), works_on=(works_on,))

    function.__module__ = f"weft.language.{module.removeprefix('tl.')}"
    wrapper: Any = builtin_named(name, f"`{name}`, on {works_on} only.", function)
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    wrapper.__signature__ = inspect.Signature(
        [inspect.Parameter(p, positional) for p in parameters]
        + [inspect.Parameter("_semantic", inspect.Parameter.KEYWORD_ONLY, default=None)]
    )
    return wrapper

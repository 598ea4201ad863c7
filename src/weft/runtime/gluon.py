"""`gluon.jit`: Gluon kernels that can be launched. `weft.gluon` has it from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.gluon.semantic import GluonSemantic

from .jit import JITFunction

__all__ = ["GluonJITFunction", "jit"]


class GluonJITFunction(JITFunction):
    """A Gluon kernel: traced to layout IR, launched for targets that have layouts."""

    semantic = GluonSemantic

    def is_gluon(self) -> bool:
        return True


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Mapping[str, Any]] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Any:
    """Decorator: make a function a Gluon kernel, or one that Gluon kernels call. Options are those of `weft.jit`.

    >>> from weft.gluon import language as gl
    >>> from weft import gluon
    >>> @gluon.jit                                                                          # doctest: +SKIP
    ... def copy(x, y, layout: gl.constexpr):
    ...     i = gl.arange(0, 1024, layout=layout)
    ...     gl.store(y + i, gl.load(x + i))
    """

    def decorate(function: Callable[..., Any]) -> GluonJITFunction:
        return GluonJITFunction(
            function,
            version=version,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
            repr=repr,
            launch_metadata=launch_metadata,
        )

    return decorate if fn is None else decorate(fn)

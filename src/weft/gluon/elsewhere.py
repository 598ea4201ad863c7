"""Names that exist so that programs can be read, and that no target here can run: each call says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.base import Unsupported
from weft.language.protocol import TRITON_BUILTIN


def only_on(module: str, target: str, instead: dict[str, str] | None = None) -> Callable[[str], Any]:
    """What makes the builtins of a module that raise Unsupported; `instead` says what there is in the place of some.

    >>> missing = only_on("blackwell", "cuda:100")
    >>> missing("tcgen05_mma")(_semantic=object())
    Traceback (most recent call last):
        ...
    weft.base.errors.Unsupported: error: blackwell.tcgen05_mma, which is for cuda:100, is not supported...
    """
    return lambda name: _missing(f"{module}.{name}", target, (instead or {}).get(name))


def _missing(name: str, target: str, hint: str | None) -> Any:
    def call(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        running = getattr(_semantic, "target", None)
        raise Unsupported(
            f"{name}, which is for {target},",
            str(running) if running is not None else None,
            hint=hint or "Weft does not write that generation's own instructions yet",
        )

    call.__name__ = name.rpartition(".")[2]
    call.__qualname__ = name
    call.__doc__ = f"For {target}: not supported yet."
    # Not `builtin(call)`: a program of the host that calls it is to be told the same, not that it forgot `@jit`.
    setattr(call, TRITON_BUILTIN, True)
    return call

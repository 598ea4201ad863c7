"""Names that exist so that programs can be read, and that no target here can run: each call says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.base import Unsupported
from weft.language.protocol import TRITON_BUILTIN

__all__ = ["only_on"]


def only_on(module: str, names: Sequence[str], target: str, instead: dict[str, str] | None = None) -> dict[str, Any]:
    """A builtin for each name of a module, which raises Unsupported; `instead` says what there is in its place.

    >>> found = only_on("blackwell", ["tcgen05_mma"], "cuda:100")
    >>> found["tcgen05_mma"](_semantic=object())
    Traceback (most recent call last):
        ...
    weft.base.errors.Unsupported: error: blackwell.tcgen05_mma, which is for cuda:100, is not supported...
    """
    return {name: _missing(f"{module}.{name}", target, (instead or {}).get(name)) for name in names}


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

"""Names that exist so that programs can be read, and that no target here can run: each call says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from weft.base import Unsupported, publish
from weft.language.protocol import TRITON_BUILTIN


def unsupported(
    module: dict[str, Any], place: str, target: str, names: str, modules: str = "", instead: Mapping[str, str] = {}
) -> Callable[[str], Any]:
    """Give a module, `place` in the language, builtins that raise Unsupported, and write its `__all__` (see `publish`).

    `instead` says what there is in the place of some. What comes back is the module's `__getattr__`: it tells type
    checkers that there are more.

    >>> blackwell = {"__name__": "weft.gluon.language.nvidia.blackwell"}
    >>> _ = unsupported(blackwell, "blackwell", "cuda:100", "tcgen05_mma tcgen05_copy")
    >>> blackwell["tcgen05_mma"](_semantic=object())
    Traceback (most recent call last):
        ...
    weft.Unsupported: error: blackwell.tcgen05_mma, which is for cuda:100, is not supported...
    """
    for name in names.split():
        module[name] = unsupported_builtin(f"{place}.{name}", target, instead.get(name))
    publish(module, modules)

    def missing(name: str) -> NoReturn:
        raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")

    return missing


def unsupported_builtin(name: str, target: str, hint: str | None = None) -> Any:
    """A builtin that raises Unsupported."""

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

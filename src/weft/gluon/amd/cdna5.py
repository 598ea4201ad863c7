"""`TensorDescriptor` for gfx1250: not supported yet."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.base import Unsupported

__all__ = ["TensorDescriptor"]


class TensorDescriptor:
    """An array for kernels that copy blocks of it by the tensor data mover; making one raises Unsupported."""

    def __init__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported("a TensorDescriptor for gfx1250", hint="Weft has no target of that generation yet")

    @staticmethod
    def from_tensor(*args: Any, **kwargs: Any) -> NoReturn:
        """Raises Unsupported."""
        TensorDescriptor()

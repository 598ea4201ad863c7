"""What operations on tensors mean: type rules, checks, and the IR that is built.

`TritonSemantic` is made by the frontend with a builder, and is handed to every builtin as `_semantic`. Its methods are
Triton's, so that user code that calls them works.

    semantic.add(x, 1, sanitize_overflow=True)       # x + 1

The parts are mixins, one family of operations each: `base` (constants, promotion, broadcasting), `arithmetic`, `casts`,
`shapes`, `memory`, `atomics`, `descriptors`, `linalg`, `collectives`, `diagnostics`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from .. import tensors
from .atomics import Atomics
from .base import IncompatibleTypeErrorImpl, SemanticBase, block_shape, shape_text
from .casts import Casts
from .collectives import Collectives
from .descriptors import Descriptors
from .diagnostics import Diagnostics
from .linalg import LinearAlgebra

__all__ = ["IncompatibleTypeErrorImpl", "SemanticBase", "TritonSemantic", "block_shape", "shape_text"]


class TritonSemantic(Casts, Diagnostics, Atomics, Descriptors, LinearAlgebra, Collectives):
    """The semantic of the language, over one builder."""

    tensor: ClassVar[type] = tensors.tensor

    def finish(self, module: ModuleOp) -> None:
        """Write down what holds for a whole module, once its kernel is traced: nothing."""

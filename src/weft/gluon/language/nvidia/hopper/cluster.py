"""`hopper.cluster`: the blocks of a cluster wait for each other.

cluster.arrive()
cluster.wait()
"""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.ir.nvidia import ttng
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin

from ....semantic import GluonSemantic

__all__ = ["arrive", "barrier", "wait"]


@builtin
def arrive(relaxed: Any = False, _semantic: GluonSemantic = GIVEN) -> None:
    """This block has come so far; with `relaxed`, what it wrote need not be seen by the others."""
    properties = {"relaxed": ir.bool_attr(bool(unwrap(relaxed)))}
    _semantic.builder.create(ttng.ClusterArriveOp, (), (), properties)


@builtin
def wait(_semantic: GluonSemantic = GIVEN) -> None:
    """Wait until all blocks of the cluster have arrived."""
    _semantic.builder.create(ttng.ClusterWaitOp)


@builtin
def barrier(relaxed: Any = False, _semantic: GluonSemantic = GIVEN) -> None:
    """All blocks of the cluster wait for each other; with `relaxed`, what they wrote need not be seen by the others."""
    arrive(relaxed, _semantic=_semantic)
    wait(_semantic=_semantic)

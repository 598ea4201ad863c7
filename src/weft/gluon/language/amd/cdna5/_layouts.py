"""`PartitionedSharedLayout` and what makes it, under the name of the module that has them in Triton."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.base import Unsupported
from weft.layouts import PartitionedSharedLayout

from ...layouts import takes_plain_values

__all__ = ["PartitionedSharedLayout", "make_partitioned_dot_layouts"]


@takes_plain_values
def make_partitioned_dot_layouts(*args: Any, **kwargs: Any) -> NoReturn:
    """For hip:gfx1250: not supported yet."""
    raise Unsupported(
        "amd.cdna5.make_partitioned_dot_layouts, which is for hip:gfx1250,",
        hint="Weft has no target of that generation yet",
    )

"""What `gl.*` means: the semantic of the language with layouts.

    laid          tiles with layouts: what meets, what shape operations give, conversions
    shared        shared memory
    partitions    warp specialisation

`GluonSemantic` takes the place of `weft.language.semantic.TritonSemantic` when a Gluon kernel is traced.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Attribute

from .partitions import Partitions

__all__ = ["GluonSemantic"]


class GluonSemantic(Partitions):
    """The semantic of a Gluon kernel, over one builder."""

    def finish(self, module: ModuleOp) -> None:
        """Write down what the layouts of a module are for: warps, threads of a warp, blocks of a cluster, target."""
        options = self.options
        attributes: dict[str, Attribute] = {
            "ttg.num-ctas": IntegerAttr(options.num_ctas, i32),
            "ttg.num-warps": IntegerAttr(options.num_warps, i32),
            "ttg.target": StringAttr(str(self.target)),
            "ttg.threads-per-warp": IntegerAttr(self.lanes, i32),
        }
        maxnreg: Any = getattr(options, "maxnreg", None)
        if maxnreg is not None:
            attributes["ttg.maxnreg"] = IntegerAttr(maxnreg, i32)
        module.attributes.update(attributes)

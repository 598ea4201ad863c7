"""Passes over tile IR: each file rewrites one thing, `pipelines` lists them in order."""

from .check_bounds import check_bounds
from .cse_dce import cse_dce
from .decompose_dot_scaled import decompose_dot_scaled
from .drop_unchanged import drop_unchanged
from .explain_asserts import explain_asserts
from .inline_calls import inline_calls
from .pipelines import cpu_pipeline, tile_pipeline
from .rewrite_block_pointers import rewrite_block_pointers
from .rewrite_descriptors import rewrite_descriptors
from .scalarize_carried import scalarize_carried
from .structure_branches import structure_branches
from .unroll_loops import unroll_loops

__all__ = [
    # the lists
    "cpu_pipeline",
    "tile_pipeline",
    # the passes, in the order in which they run
    "structure_branches",
    "inline_calls",
    "unroll_loops",
    "rewrite_block_pointers",
    "rewrite_descriptors",
    "decompose_dot_scaled",
    "check_bounds",
    "explain_asserts",
    "cse_dce",
    "drop_unchanged",
    "scalarize_carried",
]

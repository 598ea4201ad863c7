"""The passes for each target, in order, with the reason for the order.

`tile_pipeline` is what every target wants, and what `.asm["ttir"]` shows; it does what Triton's own first stage does,
so that Triton takes its result too. `cpu_pipeline` goes on to what the CPU back end takes.

Attributes of loops that nothing here reads are hints. Loops that do not say so are not unrolled; LLVM unrolls what is
worth it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import signature_of, tt

from .check_bounds import check_bounds
from .check_stores import check_stores
from .check_values import check_values
from .cse_dce import cse_dce
from .decompose_dot_scaled import decompose_dot_scaled
from .drop_unchanged import drop_unchanged
from .expand_polls import expand_polls
from .explain_asserts import explain_asserts
from .inline_calls import inline_calls
from .place_hints import place_hints
from .rewrite_block_pointers import rewrite_block_pointers
from .rewrite_descriptors import rewrite_descriptors
from .scalarize_carried import scalarize_carried
from .single_iterations import enter_known_loops
from .structure_branches import structure_branches
from .unroll_loops import unroll_loops


def tile_pipeline(module: ModuleOp, *, fuse: bool = True, remarks: RemarkCollector = NO_REMARKS) -> ModuleOp:
    """One function of one block for each kernel: no calls, no branches between blocks, no block pointers.

    With `fuse` (`enable_fp_fusion`), a product and a sum may be rounded together, here and in what follows.
    """
    structure_branches(module)  # first: only a function of one block can be copied into a loop's body
    inline_calls(module)  # before the rewrites: a block pointer or descriptor may be passed to a function
    enter_known_loops(module, remarks)  # after it: bounds may be arguments of the function
    unroll_loops(module, remarks)  # after it: what has one iteration is no loop
    if rewrite_block_pointers(module):
        cse_dce(module, fuse, remarks)  # the rewrite repeats itself for each access
        drop_unchanged(module)  # and only then is it seen which offsets stay the same
    return module


def cpu_pipeline(
    module: ModuleOp,
    *,
    debug: bool = False,
    values: bool = False,
    fuse: bool = True,
    remarks: RemarkCollector = NO_REMARKS,
) -> tuple[ModuleOp, list[str] | None]:
    """What `tile_pipeline` gave, for the CPU; also gives the type strings of the kernel's parameters.

    Afterwards (stage `cpu` of `weft.ir.verify`) there are no tensor descriptors and scaled products either; an argument
    that was a descriptor is 2 + 2 * rank arguments (see `rewrite_descriptors`). With `debug`, assertions tell their
    values, and a program ends at one that fails; with `values` besides, accesses are checked against the arrays that
    they belong to, which takes two more arguments for each array (see `check_bounds`), and values that mean nothing are
    found where they matter (see `check_values`).
    """
    kernel = next((op for op in module.body.block.ops if isinstance(op, tt.FuncOp) and op.body.blocks), None)
    signature = signature_of(kernel) if kernel is not None else None  # before descriptors become many arguments
    rewrite_descriptors(module)
    decompose_dot_scaled(module, denormals=False, remarks=remarks)
    expand_polls(module)
    if debug:  # after the rewrites: these see every access as a tile of pointers
        if values:
            check_values(module)
        place_hints(module)
        if values:
            check_bounds(module)
            check_stores(module)  # after it: what is read again is only what was inside
        explain_asserts(module)
    cse_dce(module, fuse, remarks)  # the rewrites repeat themselves; and what is constant is seen to be
    drop_unchanged(module)
    scalarize_carried(module)  # late: it sees the tiles of pointers that the rewrites made
    return module, signature

"""The passes for GPUs, in order, with the reason for the order.

This is not in `pipelines` because the CPU needs none of it: importing the layouts alone takes longer than compiling a
small kernel.
"""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import ModuleOp

from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.machines import Machine

from .align_rows import align_rows
from .alike_rows import divide_once, load_rows_once
from .assign_layouts import assign_layouts
from .check_stores import check_stores
from .check_values import check_values
from .contract_sums import contract_sums
from .counted_loops import count_loops
from .cse_dce import cse_dce
from .decompose_dot_scaled import decompose_dot_scaled
from .drop_selects import drop_selects
from .drop_unchanged import drop_unchanged
from .early_conversions import convert_early
from .early_loads import early_loads, early_rows
from .explain_asserts import explain_asserts
from .first_iterations import peel_first_iterations
from .flatten_loops import flatten_loops
from .idle_programs import end_idle_programs
from .inline_calls import inline_calls
from .invariant_offsets import add_invariants_first
from .join_branches import join_branches
from .last_iterations import peel_last_iterations
from .late_conversions import convert_late
from .narrow_carried import narrow_carried
from .one_exponential import share_exponentials
from .partial_sums import partial_sums
from .pipeline_loads import pipeline_loads
from .pipelines import tile_pipeline
from .recoalesce import recoalesce
from .rewrite_descriptors import rewrite_descriptors, unmark
from .scalarize_carried import scalarize_carried
from .select_branches import select_branches
from .short_loops import unroll_short_loops
from .split_products import split_products
from .store_operands import store_operands
from .structure_branches import structure_branches
from .vendor import passes_of


def gpu_tile_pipeline(
    module: ModuleOp, threads: int, fuse: bool = True, remarks: RemarkCollector = NO_REMARKS
) -> ModuleOp:
    """`tile_pipeline`, and what is for blocks of so many threads; with `fuse`, a product and a sum may be rounded
    together, and sums of a loop be added in another order."""
    tile_pipeline(module, fuse=fuse, remarks=remarks)
    count_loops(module)  # before all that asks for a loop's iterations
    if fuse and contract_sums(module, remarks):
        cse_dce(module)
    partial_sums(module, threads, reorder=fuse, remarks=remarks)  # after it: a sum of products is no sum any more
    return module


def gpu_pipeline(
    module: ModuleOp,
    machine: Machine,
    warps: int = 4,
    stages: int = 3,
    blocks: int = 1,
    *,
    fuse: bool = True,
    debug: bool = False,
    values: bool = False,
    remarks: RemarkCollector = NO_REMARKS,
) -> ModuleOp:
    """Turn the result of `gpu_tile_pipeline` into layout IR for a machine, as the lowering takes it.

    `stages` is how many iterations of a loop of products are in flight at a time; with 1, only the current one. A
    program is a cluster of `blocks` blocks.

    The result has no tensor descriptors, and scaled products only if the machine has an instruction for them; an
    argument that was a descriptor is 2 + 2 * rank arguments (see `rewrite_descriptors`). With `debug`, assertions say
    what they check, and with `values` too, undefined values are reported where they take effect (see `check_values`).
    """
    adds = passes_of(machine)
    bulk = machine.async_proxy
    rewrite_descriptors(module, machine.name, remarks if bulk else NO_REMARKS, marked=bulk)
    checked = debug and values  # undefined values are tracked through plain products only
    scaled = partial(adds.scaled_layouts, machine=machine, warps=warps)
    decompose_dot_scaled(module, remarks=remarks, kept=lambda op: not checked and blocks == 1 and bool(scaled(op)))
    if checked:
        check_values(module)
        check_stores(module, barriers=True)
    if debug:
        explain_asserts(module)
    split_products(module, machine, remarks)
    end_idle_programs(module, remarks)
    cse_dce(module, fuse, remarks)  # so that it is known which masks are left
    unroll_short_loops(module, machine.threads(warps), remarks)
    peel_first_iterations(module, remarks)  # after unrolling: an unrolled loop has no first iteration
    peel_last_iterations(module, machine.threads(warps), remarks)
    cse_dce(module, fuse, remarks)  # the rewrites above repeat operations for each access
    join_branches(module)  # after cse_dce, which makes equal conditions one value
    select_branches(module)  # the branches that are left
    drop_unchanged(module)  # only now it is known which values loops do not change
    flatten_loops(module, machine.threads(warps), remarks)  # after it: both loops must carry the same
    add_invariants_first(module)
    divide_once(module)  # so that the next two find tiles whose elements are equal
    scalarize_carried(module, pointers=adds.scalar_pointers)  # tiles made from scalars need not move
    narrow_carried(module)
    share_exponentials(module)
    load_rows_once(module)
    early_loads(module)
    if not debug and drop_selects(module):  # checks need the value of every element
        cse_dce(module)
    adds.before_layouts(module, machine, warps, blocks, remarks)
    assign_layouts(module, machine, warps, blocks, stages > 1 and bool(machine.async_copies), remarks)
    recoalesce(module, remarks)
    adds.after_layouts(module, machine, stages, remarks)
    store_operands(module, machine, loaded=False, remarks=remarks)  # before copies take the memory
    pipeline_loads(module, machine, stages, remarks)
    if bulk:
        unmark(module, remarks)
    store_operands(module, machine, loaded=True, remarks=remarks)
    adds.after_copies(module, machine, remarks)  # the stores that are left
    convert_late(module)
    convert_early(module)
    align_rows(module, remarks)  # last, because accesses of rows are no loads and stores any more
    early_rows(module)
    cse_dce(module, fuse)  # old addresses of loops, and what first iterations repeat
    drop_unchanged(module)
    return module


def layout_pipeline(
    module: ModuleOp,
    remarks: RemarkCollector = NO_REMARKS,
    *,
    relayout: bool = False,
    debug: bool = False,
    values: bool = False,
) -> ModuleOp:
    """Prepare layout IR of a Gluon kernel or a file for the lowering; `debug` and `values` are as for `gpu_pipeline`.

    Layouts stay as the author chose them, unless `relayout` permits other ones; remarks say what that would gain.
    """
    structure_branches(module)
    inline_calls(module)
    if values:
        check_values(module)
        if all(op.name != "ttg.warp_specialize" for op in module.walk()):  # its partitions do not meet at barriers
            check_stores(module, barriers=True)
    if debug:
        explain_asserts(module)
    recoalesce(module, remarks, keeps_layouts=not relayout)
    return module

"""One right set of parameters for each named layout: what hints show. A test makes all of them.

>>> example("SwizzledSharedLayout")
'SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])'
>>> example("trans") is None
True
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.base import LayoutError

_BLOCKED = "BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])"
_MFMA = "AMDMFMALayout(4, [32, 32, 64], True, [4, 1])"
_MMA = "NVMMADistributedLayout([2, 0], [4, 1], [16, 8])"

EXAMPLES: Mapping[str, str] = {
    "AMDMFMALayout": "version=3, instr_shape=[32, 32, 8], transposed=True, warps_per_cta=[4, 1]",
    "AMDWMMALayout": "version=1, transposed=True, warps_per_cta=[4, 1]",
    "BlockedLayout": "size_per_thread=[1, 8], threads_per_warp=[4, 8], warps_per_cta=[4, 1], order=[1, 0]",
    "DistributedLinearLayout":
        "reg_bases=[[0, 1]], lane_bases=[[1, 0], [2, 0], [4, 0], [8, 0], [0, 2]], warp_bases=[[0, 4], [16, 0]], "
        "block_bases=[], shape=[32, 8]",
    "DotOperandLayout": f"operand_index=0, parent={_MMA}, k_width=2",
    "IntelDPASLayout":
        "repeat_count=8, systolic_depth=8, execution_size=16, ops_per_channel=2, warps_per_cta=[4, 1], "
        "rep_cluster=[1, 1], threads_per_warp=16",
    "LinearLayout": "{'register': [[0, 1]], 'lane': [[1, 0], [2, 0]]}, {'dim0': 4, 'dim1': 2}",
    "LinearLayout.from_bases": "{'register': [[0, 1]], 'lane': [[1, 0], [2, 0]]}, {'dim0': 4, 'dim1': 2}",
    "LinearLayout.identity_1d": "size=4, in_dim='lane', out_dim='dim0'",
    "LinearLayout.strided_1d": "size=4, stride=2, in_dim='lane', out_dim='dim0'",
    "LinearLayout.zeros_1d": "size=4, in_dim='lane', out_dim='dim0'",
    "NVMMADistributedLayout": "version=[2, 0], warps_per_cta=[4, 1], instr_shape=[16, 8]",
    "NVMMASharedLayout": "swizzle_byte_width=128, element_bitwidth=16, rank=2",
    "NVMMASharedLayout.get_default_for": "block_shape=[64, 64], dtype=16",
    "PaddedSharedLayout": "interval_padding_pairs=[[4, 2]], offset_bases=[[0, 1], [1, 0]], cga_layout=[], shape=[2, 2]",
    "PaddedSharedLayout.with_identity_for": "interval_padding_pairs=[[64, 8]], shape=[64, 64], order=[1, 0]",
    "SharedLinearLayout": "offset_bases=[[0, 1], [0, 2], [1, 0], [2, 0]]",
    "SliceLayout": f"dim=1, parent={_BLOCKED}",
    "SwizzledSharedLayout": "vec=8, per_phase=1, max_phase=8, order=[1, 0]",
    "TensorMemoryScalesLayout": "",
    "get_tmem_reg_layout": "element_ty=32, shape=[128, 64], layout=TensorMemoryLayout([128, 64], 1), num_warps=4",
    "mfma_scale_layout": f"dot_operand_layout=DotOperandLayout(0, {_MFMA}, 32), shape=[32, 4]",
    "natural_k_width": "element_bits=16",
    "TensorMemoryLayout": "block=[128, 64], col_stride=1",
    "make_cga_layout": "ctas_per_cga=[2, 1], cta_split_num=[2, 1], cta_order=[1, 0]",
}  # fmt: skip


OPERATIONS: Mapping[str, str] = {
    "broadcast": "dimensions of size 1 grow, all others stay as they are",
    "expand_dims": "the layout of its result has size 1 in the new dimension, `axis`",
    "fp4_to_fp": "two elements for each byte, along `axis`",
    "gather": "indices and source have one rank; axes count from 0",
    "join": "the result has one dimension more, the last, of size 2",
    "reduce": "axes count from 0, and backwards from -1",
    "reshape": "both shapes have one number of elements: change one of the sizes",
    "split": "the source has 2 as its last size",
    "trans": "an order is a list such as [1, 0], each dimension once",
}
"""The ways out where an operation does not fit a layout."""


def example(name: str) -> str | None:
    """A call that makes such a layout.

    >>> from weft.layouts import example
    >>> example("SwizzledSharedLayout")
    'SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])'
    """
    return f"{name}({EXAMPLES[name]})" if name in EXAMPLES else None


def _way_out(message: str) -> str | None:
    """The hint of an error that has none of its own, and whose message begins with what it is about."""
    name = message.partition(":")[0]
    right = example(name)
    return OPERATIONS.get(name) if right is None else f"a right one, for comparison: {right}"


LayoutError.way_out = staticmethod(_way_out)

"""Rows of memory that begin at any address, read and written by aligned vectors: operations of Weft's own.

    %v = weft.load_row %row, %shift, %end, %other {run = 8 : i32} : !tt.ptr<bf16> -> tensor<4096xbf16, #layout>
    weft.store_row %row, %shift, %end, %v {run = 8 : i32} : !tt.ptr<bf16>, tensor<4096xbf16, #layout>

Place p of such a tile of n places holds element (p - shift) mod n of the row, of which the first `end` are there, and
`other` beyond them. A thread has `run` places in a row, and `shift` is chosen so that the runs begin at multiples of
their size in memory. Only the first run, and the one in which the row ends, have elements that lie elsewhere or not at
all; see `weft.passes.align_rows`.
"""

from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ..effects import ReadOp, WriteOp


@irdl_op_definition
class LoadRowOp(ReadOp):
    """Read a row:  %v = weft.load_row %row, %shift, %end, %other {run = 8 : i32} : !tt.ptr<f16> -> tensor<64xf16, #a>

    With `aligned`, runs are known to begin at multiples of their size, or of 16 bytes where they are longer. Otherwise
    their distance from such a multiple is found when the program runs; it is the same for all of them.
    """

    name = "weft.load_row"
    row = operand_def()
    shift = operand_def()
    end = operand_def()
    other = operand_def()
    run = prop_def()
    aligned = opt_prop_def()
    cache = opt_prop_def()
    evict = opt_prop_def()
    result = result_def()


@irdl_op_definition
class StoreRowOp(WriteOp):
    """Write a row, whose runs are aligned:

    weft.store_row %row, %shift, %end, %v {run = 8 : i32} : !tt.ptr<f16>, tensor<64xf16, #a>
    """

    name = "weft.store_row"
    row = operand_def()
    shift = operand_def()
    end = operand_def()
    value = operand_def()
    run = prop_def()
    cache = opt_prop_def()
    evict = opt_prop_def()

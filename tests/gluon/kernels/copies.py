"""Copies with one element a thread and with many, in one dimension and in two, through layouts of both sides."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from gluon.sources import Sources

SOURCES = source = Sources()

LINE = gl.BlockedLayout([1], [32], [4], [0])
ROWS = gl.BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])
COLUMNS = gl.BlockedLayout([4, 1], [16, 2], [1, 4], [0, 1])


@source(x="*fp32", y="*fp32")
@gluon.jit
def copy_scalar(x, y):
    value = gl.load(x)
    gl.store(y, value)


@source(x="*fp32", y="*fp32", n="i32", constexprs={"BLOCK": 64})
@gluon.jit
def memcpy_loop(x, y, n, BLOCK: gl.constexpr):
    start = gl.program_id(0) * BLOCK
    end = min(start + BLOCK, n)
    for i in range(start, end):
        gl.store(y + i, gl.load(x + i))


@source(x="*fp16", y="*fp16", n="i32", constexprs={"XBLOCK": 2048, "layout": gl.BlockedLayout([8], [32], [4], [0])})
@gluon.jit
def memcpy_1d(x, y, n, XBLOCK: gl.constexpr, layout: gl.constexpr):
    start = gl.program_id(0) * XBLOCK
    offsets = start + gl.arange(0, XBLOCK, layout=layout)
    mask = offsets < n
    value = gl.load(x + offsets, mask=mask)
    gl.store(y + offsets, value, mask=mask)


@gluon.jit
def get_mask_and_offsets(start_x, start_y, xnumel, ynumel, xstride, ystride, XBLOCK: gl.constexpr,
                         YBLOCK: gl.constexpr, layout: gl.constexpr):  # fmt: skip
    indices_x = start_x + gl.arange(0, XBLOCK, layout=gl.SliceLayout(dim=1, parent=layout))
    indices_y = start_y + gl.arange(0, YBLOCK, layout=gl.SliceLayout(dim=0, parent=layout))
    mask = (indices_x[:, None] < xnumel) & (indices_y[None, :] < ynumel)
    offsets = xstride * indices_x[:, None] + ystride * indices_y[None, :]
    return mask, offsets


STRIDES = {"xnumel": "i32", "ynumel": "i32", "xstride_in": "i32", "ystride_in": "i32", "xstride_out": "i32",
           "ystride_out": "i32"}  # fmt: skip


@source(x="*fp32", y="*fp32", **STRIDES, constexprs={"layout": ROWS, "XBLOCK": 32, "YBLOCK": 64})
@gluon.jit
def memcpy_2d(x, y, xnumel, ynumel, xstride_in, ystride_in, xstride_out, ystride_out, layout: gl.constexpr,
              XBLOCK: gl.constexpr, YBLOCK: gl.constexpr):  # fmt: skip
    start_x = gl.program_id(0) * XBLOCK
    start_y = gl.program_id(1) * YBLOCK
    mask, in_offsets = get_mask_and_offsets(
        start_x, start_y, xnumel, ynumel, xstride_in, ystride_in, XBLOCK, YBLOCK, layout
    )
    value = gl.load(x + in_offsets, mask=mask)
    mask, out_offsets = get_mask_and_offsets(
        start_x, start_y, xnumel, ynumel, xstride_out, ystride_out, XBLOCK, YBLOCK, layout
    )
    gl.store(y + out_offsets, value, mask=mask)


@source(x="*fp32", y="*fp32", **STRIDES,
        constexprs={"layout_in": ROWS, "layout_out": COLUMNS, "XBLOCK": 32, "YBLOCK": 64})  # fmt: skip
@gluon.jit
def memcpy_2d_inout(x, y, xnumel, ynumel, xstride_in, ystride_in, xstride_out, ystride_out, layout_in: gl.constexpr,
                    layout_out: gl.constexpr, XBLOCK: gl.constexpr, YBLOCK: gl.constexpr):  # fmt: skip
    start_x = gl.program_id(0) * XBLOCK
    start_y = gl.program_id(1) * YBLOCK
    mask_in, in_offsets = get_mask_and_offsets(
        start_x, start_y, xnumel, ynumel, xstride_in, ystride_in, XBLOCK, YBLOCK, layout_in
    )
    mask_out, out_offsets = get_mask_and_offsets(
        start_x, start_y, xnumel, ynumel, xstride_out, ystride_out, XBLOCK, YBLOCK, layout_out
    )
    value = gl.load(x + in_offsets, mask=mask_in)
    value = gl.convert_layout(value, layout_out)
    gl.store(y + out_offsets, value, mask=mask_out)


@source(x="*fp32", y="*fp32")
@gluon.jit
def converted_for_free(x, y):
    sliced: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0]))
    line: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, 256, layout=sliced)
    j = gl.convert_layout(i, line, assert_trivial=True)
    gl.store(y + j, gl.load(x + j) + i.to(gl.float32).sum(0))


@gluon.constexpr_function
def row_layout(columns, warps):
    per_thread = min(4, columns // 32)
    return gl.BlockedLayout([1, per_thread], [1, 32], [warps, 1], [1, 0])


@source(x="*bf16", y="*bf16", stride="i32", constexprs={"ROWS": 16, "COLUMNS": 128})
@gluon.jit
def copy_with_computed_layout(x, y, stride, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    layout: gl.constexpr = row_layout(COLUMNS, gl.num_warps())
    gl.static_assert(layout.size_per_thread[1] == 4)
    i = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    j = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
    at = gl.expand_dims(i, 1) * stride + gl.expand_dims(j, 0)
    gl.store(y + at, gl.load(x + at, mask=(i < 7)[:, None], other=1.0))


@source(x="*i8", y="*i64", n="i64", constexprs={"layout": LINE})
@gluon.jit
def widen(x, y, n, layout: gl.constexpr):
    i = gl.arange(0, 512, layout).to(gl.int64)
    value = gl.load(x + i, i < n, cache_modifier=".cg", eviction_policy="evict_first", volatile=True)
    gl.store(y + i, value.to(gl.int64), i < n, cache_modifier=".cs", eviction_policy="evict_last")

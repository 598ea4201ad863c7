"""What a finding offers is what it takes: applied, the finding is gone. Nothing is offered that cannot be done."""

from __future__ import annotations

from typing import Any

import weft
import weft.language as tl
from weft import gluon, like
from weft.gluon import language as gl
from weft.gluon.language.nvidia.ampere import async_copy


def found(e: Any) -> dict[str, Any]:
    """The first finding of each code."""
    return {f.code: f for f in reversed(e.findings)}


@weft.jit
def rows(x, out, n_rows, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[None, :]
    for row in range(tl.program_id(0), n_rows, 4):
        r = row + tl.arange(0, 4)[:, None]
        tl.store(out + r * BLOCK + i, tl.load(x + r * stride + i, mask=i < n, other=0.0))


def test_all_that_spoils_an_access_is_padded_at_once() -> None:
    """A stride alone would leave the mask, which ends within a vector."""
    x = like((1000, 781), "fp32")
    e = rows.explain(x, x, 1000, 781, 781, BLOCK=1024, grid=(132,), target="cuda:90")
    finding = found(e)["narrow-access"]
    assert finding.change == {"stride": 784, "n": 784}
    assert finding.fix == "pad it to 784, and mask the rest; it takes `n` to 784 as well"
    assert "`stride` = 781, and 781 % 4 = 1" in finding.why
    assert found(e.what_if(**finding.change)) == {}


@weft.jit
def counts(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(tl.load(x + i, mask=i < n, other=0).to(tl.int32), BINS))


def test_sectors_that_narrow_accesses_touch_are_told_with_what_makes_them_narrow() -> None:
    e = counts.explain(
        like(1_000_003, "uint8"), like(256, "int32"), 1_000_003, BINS=256, BLOCK=2048, grid=(489,), target="cuda:90"
    )
    narrow, spread = (found(e)[code] for code in ("narrow-access", "uncoalesced-access"))
    assert "touches 500,003 sectors" in narrow.what and "1000003 % 16 = 3" in narrow.why
    assert spread.span.line == narrow.span.line + 0 and "2 elements side by side" in spread.why
    assert spread.change == {"num_warps": 8}
    fixed = e.what_if(num_warps=8)
    assert "uncoalesced-access" not in found(fixed)
    assert abs(e.time.microseconds - fixed.time.microseconds - spread.microseconds) < 0.1 * e.time.microseconds


@weft.jit
def interleaved(x, out, HALF: tl.constexpr):
    t = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
    d = tl.arange(0, HALF)[None, :]
    a, b = tl.load(x + t * HALF * 2 + d * 2), tl.load(x + t * HALF * 2 + d * 2 + 1)
    tl.store(out + t * HALF + d, a + b)


def test_elements_in_turn_are_to_be_loaded_as_a_row() -> None:
    x = like((4096, 256), "fp16")
    finding = found(interleaved.explain(x, x, HALF=128, grid=(256,), target="cuda:90"))["uncoalesced-access"]
    assert finding.why.endswith("neighbours along dimension 1 are 2 elements apart")
    assert finding.fix.startswith("load the 2 that lie in turn as one row")


@weft.jit
def mixed(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(tl.float32) + tl.load(y + i))


def test_a_wish_that_is_lost_has_its_cost() -> None:
    """A half needs 8 elements in a row for 16 bytes, a float 4."""
    x, y = like(1 << 20, "fp16"), like(1 << 20, "fp32")
    e = mixed.explain(x, y, y, BLOCK=4096, grid=(256,), target="cuda:90")
    (wish,) = [wish for tile in e.tiles for wish in tile.remark.others if wish.site.what == "tt.load"]
    row = next(row for row in str(e).splitlines() if "blocked([8]" in row)
    assert row.endswith("8 bytes at a time, of 16") and wish.layout.startswith("#ttg.blocked<{sizePerThread = [8]")


@weft.jit
def split(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1) * BK + tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK * 4):
        total = tl.dot(tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :]), total)
        k += BK * 4
    tl.atomic_add(c + m[:, None] * N + n[None, :], total)


def test_a_conversion_of_what_a_loop_gives_is_not_in_the_loop() -> None:
    a, b, c = like((64, 2048), "fp16"), like((2048, 1024), "fp16"), like((64, 1024), "fp32")
    e = split.explain(a, b, c, 1024, 2048, BM=64, BN=64, BK=64, grid=(16, 4), target="cuda:90")
    assert [each.in_loop for each in e.conversions] == [False]
    assert e.occupancy.limit == "grid" and e.occupancy.of_grid == 1
    assert f"the grid has 1 for a multiprocessor, where {e.occupancy.blocks} blocks of 4 warps fit" in str(e)
    assert all(held.words < 64 for held in e.registers)  # of 32 addresses for runs of 8 elements, those of 4
    pointers = [row for row in str(e).splitlines() if "xptr<f16>" in row]
    assert all("8 elements in a row, 16 bytes" in row for row in pointers)


@weft.jit
def locked(x, out, lock, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.load(x + tl.program_id(0) * BLOCK + i)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(lock + 1) == 0:
        tl.atomic_xchg(lock + 1, 1)
    else:
        total += tl.load(out + i)
    tl.store(out + i, total)
    tl.atomic_xchg(lock, 0)


def test_of_branches_that_are_not_known_the_side_that_does_more_is_counted() -> None:
    x = like((256, 4096), "fp32")
    e = locked.explain(x, like(4096, "fp32"), like(2, "int32"), BLOCK=4096, grid=(256,), target="cuda:90")
    loads = [access for access in e.accesses if access.remark.access == "load" and access.shape == (4096,)]
    assert [access.sectors[0] for access in loads] == [256 * 512, 256 * 512]
    assert "as if they were false everywhere" in e.counts.note


@gluon.jit
def turned(x, out, n, memory: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    r, c = gl.arange(0, 64, gl.SliceLayout(1, layout)), gl.arange(0, 32, gl.SliceLayout(0, layout))
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [64, 32], memory)
    async_copy.async_copy_global_to_shared(buffer, x + (gl.program_id(0) * 64 + r)[:, None] * 32 + c[None, :])
    async_copy.commit_group()
    async_copy.wait_group(0)
    tile = buffer.permute((1, 0)).load(layout)
    r, c = gl.arange(0, 32, gl.SliceLayout(1, layout)), gl.arange(0, 64, gl.SliceLayout(0, layout))
    gl.store(out + r[:, None] * n + (gl.program_id(0) * 64 + c)[None, :], tile)


def test_a_layout_without_conflicts_is_one_of_the_buffer_that_leaves_copies_as_wide_as_they_are() -> None:
    x, out = like((4096, 32), "fp32"), like((32, 4096), "fp32")

    def explained(memory: gl.SwizzledSharedLayout) -> Any:
        return turned.explain(x, out, 4096, memory, grid=(64,), target="cuda:90")

    e = explained(gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    fix = found(e)["bank-conflicts"].fix
    assert fix.startswith("gl.SwizzledSharedLayout(4, 4, 8, [1, 0]) in place")
    fixed = explained(gl.SwizzledSharedLayout(4, 4, 8, [1, 0]))
    assert [access.wavefronts for access in fixed.accesses] == [(0, 0), (4096, 4096), (0, 0)]
    assert fixed.accesses[0].remark.bytes == 16 and fixed.findings == ()


@weft.jit
def weights_of_images(w, out, channels, R: tl.constexpr, K: tl.constexpr, BK: tl.constexpr):
    k = tl.arange(0, K)
    total = tl.zeros([K], tl.float32)
    for start in range(0, R * channels, BK):
        i = start + tl.arange(0, BK)
        x = tl.load(w + k[:, None] * (R * channels) + i[None, :], mask=i[None, :] < R * channels, other=0.0)
        total += tl.sum(x.to(tl.float32), 1)
    tl.store(out + k, total)


def test_of_a_product_the_factor_that_an_argument_is_in_is_blamed() -> None:
    """Rows are no multiple of anything; once they were blamed, and nothing could be done about them."""
    e = weights_of_images.explain(
        like((32, 9 * 60), "fp16"), like(32, "fp32"), 60, R=9, K=32, BK=64, grid=(1,), target="cuda:80"
    )
    finding = found(e)["narrow-access"]
    assert finding.change == {"channels": 64} and "`channels` is not known to be a multiple of 8" in finding.why
    assert "narrow-access" not in found(e.what_if(channels=64))


@weft.jit
def normed(x, w, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * BLOCK
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(n):
        total += tl.load(x + (row + start) * BLOCK + i).to(tl.float32)
    group = tl.load(w + i // n)
    tl.store(out + row + i, total * group)


def test_nothing_is_said_of_what_nobody_can_do_better() -> None:
    """Float32 beside bfloat16 takes two accesses of a thread, whatever its layout; and what many lanes load of a small
    table is no row."""
    x, out = like((4096 * 1024,), "bf16"), like(4096 * 1024, "fp32")
    for target in ("cuda:90", "xpu:pvc"):
        e = normed.explain(x, like(1024, "bf16"), out, 16, BLOCK=1024, num_warps=4, grid=(4096,), target=target)
        assert found(e) == {}, target


@weft.jit
def few_rows(x, w, out, K: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """16 rows by a matrix that is read once."""
    m, n = tl.arange(0, 16)[:, None], tl.program_id(0) * N + tl.arange(0, N)[None, :]
    total = tl.zeros([16, N], tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        total = tl.dot(tl.load(x + m * K + k[None, :]), tl.load(w + n * K + k[:, None]), total)
    tl.store(out + m * 16384 + n, total)


def test_a_better_instruction_is_no_matter_where_memory_is_waited_for() -> None:
    x, w, out = like((16, 2048), "fp16"), like((65536, 2048), "fp16"), like((16, 65536), "fp32")
    e = few_rows.explain(x, w, out, K=2048, N=64, BK=128, num_stages=4, grid=(1024,), target="cuda:90")
    assert any(r.instruction == "wgmma" for r in e.remarks.of(weft.remarks.InstructionDeclined))
    assert e.time is not None and e.time.bound == "DRAM" and "weaker-instruction" not in found(e)


@weft.jit
def products(x, w, out, K: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * 64 + tl.arange(0, 64)[:, None], tl.arange(0, N)[None, :]
    total = tl.zeros([64, N], tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        total = tl.dot(tl.load(x + m % 1000 * K + k[None, :]), tl.load(w + n * K + k[:, None]), total)
    tl.store(out + m * N + n, total)


def test_a_machine_is_not_blamed_for_what_it_does_not_have() -> None:
    """CDNA3 loads one iteration ahead, through registers, however many stages; Intel's GPUs have no asynchronous
    copies."""
    x, out = like((1000, 256), "fp16"), like((1024, 64), "fp32")
    for target in ("hip:gfx942", "xpu:pvc"):
        e = products.explain(x, x, out, K=256, N=64, BK=64, num_stages=3, grid=(16,), target=target)
        assert e.remarks.of(weft.remarks.Pipelined) or e.remarks.of(weft.remarks.NotPipelined)
        assert not {"fewer-stages", "not-pipelined"} & found(e).keys(), target
    assert found(e)["weaker-instruction"].fix == "leave the modulo out, and mask what is behind the end"

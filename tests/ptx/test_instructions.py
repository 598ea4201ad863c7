"""Instructions where they are subtle, one at a time: what the PTX ISA says of them, on numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from weft.sim.nvidia.ptx_text import Group, Place

from .control import run
from .parsing import Program
from .spaces import Array, Fault, Global, Unknown

LANE = np.arange(32)


def text(body: str, threads: int = 32) -> str:
    """A kernel around instructions: %rd1 and %rd2 are the addresses of its arrays, %r99 the thread's number."""
    return f"""
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry kernel(.param .u64 .ptr .global .align 1 a, .param .u64 .ptr .global .align 1 b)
.reqntid {threads}
{{
    .reg .pred %p<9>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<100>;
    .reg .b64 %rd<10>;
    ld.param.b64 %rd1, [a];
    ld.param.b64 %rd2, [b];
    mov.u32 %r99, %tid.x;
    {body}
    ret;
}}
"""


def execute(
    body: str, given: Array | None = None, threads: int = 32, out: Array | None = None, apart: bool = False
) -> Array:
    """What is in the array behind %rd2 afterwards: 32-bit words, one per thread, if no other is given."""
    a = np.zeros(threads, np.uint32) if given is None else given.copy()
    b = np.full(threads, 0xDEAD, np.uint32) if out is None else out
    memory = Global()
    parameters = np.array([memory.add(a), memory.add(b)], np.uint64).view(np.uint8)
    run(Program.parse(text(body, threads)), (1,), memory, parameters, 1024, apart)
    return b


STORE = "mul.wide.u32 %rd9, %r99, 4; add.s64 %rd9, %rd2, %rd9; st.global.b32 [%rd9], %r9;"
LOAD = "mul.wide.u32 %rd8, %r99, 4; add.s64 %rd8, %rd1, %rd8; ld.global.b32 %r1, [%rd8];"


def value(instructions: str) -> int:
    """What %r9 holds after instructions, which every thread executes alike."""
    out = execute(instructions + STORE)
    assert (out == out[0]).all()
    return int(out[0])


def float_bits(x: float) -> str:
    return f"0f{int(np.float32(x).view(np.uint32)):08X}"


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("prmt.b32 %r9, 0x33221100, 0x77665544, 0x7410", 0x77441100),
        ("prmt.b32 %r9, 0x00000080, 0, 0x1908", 0x000080FF),  # bit 3 of a selector: the sign of the byte, eight times
        ("prmt.b32.f4e %r9, 0x33221100, 0x77665544, 1", 0x44332211),
        ("prmt.b32.b4e %r9, 0x33221100, 0x77665544, 1", 0x66770011),
        ("prmt.b32.rc8 %r9, 0x33221100, 0x77665544, 2", 0x22222222),
        ("prmt.b32.ecl %r9, 0x33221100, 0x77665544, 1", 0x33221111),
        ("prmt.b32.ecr %r9, 0x33221100, 0x77665544, 2", 0x22221100),
        ("prmt.b32.rc16 %r9, 0x33221100, 0x77665544, 3", 0x33223322),
        ("shl.b32 %r9, 1, 31", 0x80000000),
        ("shl.b32 %r9, 1, 32", 0),
        ("shl.b32 %r9, 1, -1", 0),
        ("shr.u32 %r9, 0x80000000, 40", 0),
        ("shr.s32 %r9, 0x80000000, 40", 0xFFFFFFFF),
        ("shr.s32 %r9, 0x80000000, 4", 0xF8000000),
        ("shf.l.wrap.b32 %r9, 0x80000001, 0x00000002, 33", 0x5),
        ("shf.l.clamp.b32 %r9, 0x80000001, 0x00000002, 33", 0x80000001),
        ("shf.r.wrap.b32 %r9, 0x80000001, 0x00000003, 1", 0xC0000000),
        ("shf.r.clamp.b32 %r9, 0x80000001, 0x00000003, 64", 0x00000003),
        ("bfe.u32 %r9, 0xABCD1234, 8, 8", 0x12),
        ("bfe.s32 %r9, 0x0000F000, 12, 4", 0xFFFFFFFF),
        ("bfe.u32 %r9, 0xF0000000, 28, 8", 0xF),
        ("bfe.s32 %r9, 0x80000000, 28, 8", 0xFFFFFFF8),  # beyond the register: its top bit
        ("bfe.s32 %r9, 0xFFFFFFFF, 3, 0", 0),
        ("bfi.b32 %r9, 0xFF, 0x12345678, 8, 4", 0x12345F78),
        ("bfi.b32 %r9, 0xFF, 0x12345678, 40, 4", 0x12345678),
        ("bfi.b32 %r9, 0xFFFFFFFF, 0, 28, 12", 0xF0000000),
        ("lop3.b32 %r9, 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0x1B", 0x1B1B1B1B),
        ("lop3.b32 %r9, 0xFFFF0000, 0xFF00FF00, 0xF0F0F0F0, 0xEA", 0xFFF0F0F0),  # a and b, or c
        ("mul.hi.s32 %r9, 0x80000000, 0x80000000", 0x40000000),
        ("mul.hi.u32 %r9, 0xFFFFFFFF, 0xFFFFFFFF", 0xFFFFFFFE),
        ("div.s32 %r9, -7, 2", 0xFFFFFFFD),
        ("rem.s32 %r9, -7, 2", 0xFFFFFFFF),
        ("popc.b32 %r9, 0xF0F0F001", 13),
        ("clz.b32 %r9, 0x00010000", 15),
        ("brev.b32 %r9, 0x00000003", 0xC0000000),
    ],
)
def test_bits_and_integers(instruction: str, expected: int) -> None:
    assert value(instruction + ";") == expected


def test_prmt_takes_its_selectors_from_sixteen_bits() -> None:
    for selectors in (0x3210, 0x7654, 0x0F1E, 0xDEAD):
        data = (0x8C3B7AF1).to_bytes(4, "little") + (0x10E98452).to_bytes(4, "little")
        chosen = [selectors >> 4 * k & 15 for k in range(4)]
        expected = [(255 if data[n & 7] & 128 else 0) if n & 8 else data[n & 7] for n in chosen]
        got = value(f"prmt.b32 %r9, 0x8C3B7AF1, 0x10E98452, {selectors:#x};")
        assert got == int.from_bytes(bytes(expected), "little")


@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        ("rni.s32.f32", 2.5, 2),
        ("rni.s32.f32", 3.5, 4),
        ("rzi.s32.f32", -2.9, -2 % 2**32),
        ("rmi.s32.f32", -2.1, -3 % 2**32),
        ("rpi.s32.f32", 2.1, 3),
        ("rzi.s32.f32", 3e9, 2**31 - 1),
        ("rzi.u32.f32", -1.0, 0),
        ("rzi.s32.f32", float("nan"), 0),
        ("rn.bf16.f32", 1 + 2**-8, 0x3F80),  # half way: to even
        ("rn.bf16.f32", 1 + 3 * 2**-8, 0x3F82),
        ("rz.bf16.f32", -1 - 3 * 2**-8, 0xBF81),
        ("rn.f16.f32", 1 + 2**-11, 0x3C00),
        ("rz.f16.f32", 65519.0, 0x7BFF),
        ("rn.f16.f32", 65520.0, 0x7C00),
        ("rna.tf32.f32", 1 + 2**-11, 0x3F802000),  # half way: away from zero
        ("rna.tf32.f32", float("-inf"), 0xFF800000),
        ("sat.f32.f32", -3.0, 0),
        ("sat.f32.f32", float("nan"), 0),
    ],
)
def test_conversions_of_floats(kind: str, number: float, expected: int) -> None:
    to = "%rs1" if "16" in kind.split(".")[1] else "%r9"
    widen = "cvt.u32.u16 %r9, %rs1;" if to == "%rs1" else ""
    assert value(f"cvt.{kind} {to}, {float_bits(number)};{widen}") == expected


def test_nan_as_an_integer_of_64_bits() -> None:
    """Zero only where neither side has 64 bits."""
    nan = float_bits(float("nan"))
    assert value(f"cvt.rzi.s64.f32 %rd5, {nan}; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r9, %rd5;") == 0x80000000
    assert value("cvt.rzi.s32.f64 %r9, 0d7FF8000000000000;") == 0x80000000


def test_conversions_of_integers() -> None:
    assert value("mov.b32 %r1, 0x1234FF80; cvt.s32.s8 %r9, %r1;") == 0xFFFFFF80
    assert value("mov.b32 %r1, 0x1234FF80; cvt.u32.u8 %r9, %r1;") == 0x80
    assert value("cvt.rn.f32.u32 %r9, 0x01000003;") == 0x4B800002  # 2^24 + 3 has no float32: 2^24 + 4


def test_fp8_takes_the_largest_where_there_is_no_other() -> None:
    pair = "cvt.rn.satfinite.{}.f32 %rs1, {}, {}; cvt.u32.u16 %r9, %rs1;"
    assert value(pair.format("e4m3x2", float_bits(1000.0), float_bits(-1.0))) == 0x7EB8
    assert value(pair.format("e5m2x2", float_bits(float("inf")), float_bits(float("nan")))) == 0x7B7F


def test_fma_rounds_once() -> None:
    x = float(np.float32(1 + 2**-12))
    expected = int(np.float32(x * x - 1).view(np.uint32))  # exact in float64; rounded before the sum it is another
    assert value(f"fma.rn.f32 %r9, {float_bits(x)}, {float_bits(x)}, {float_bits(-1.0)};") == expected
    assert int(np.float32(np.float32(x) * np.float32(x) - 1).view(np.uint32)) != expected


def test_comparisons_with_nan() -> None:
    nan, one = float_bits(float("nan")), float_bits(1.0)
    for kind, expected in {"lt": 0, "ltu": 1, "eq": 0, "ne": 0, "neu": 1, "num": 0, "nan": 1}.items():
        assert value(f"setp.{kind}.f32 %p1, {nan}, {one}; selp.b32 %r9, 1, 0, %p1;") == expected, kind


def test_extrema() -> None:
    nan, one, zero, minus = (float_bits(x) for x in (float("nan"), 1.0, 0.0, -0.0))
    assert value(f"max.f32 %r9, {nan}, {one};") == 0x3F800000
    assert np.isnan(np.uint32(value(f"max.NaN.f32 %r9, {nan}, {one};")).view(np.float32))
    assert value(f"min.f32 %r9, {zero}, {minus};") == 0x80000000
    assert value(f"max.f32 %r9, {minus}, {zero};") == 0


def test_ftz_takes_subnormal_numbers_for_zero() -> None:
    small = "0f80000001"
    assert value(f"add.ftz.f32 %r9, {small}, 0f80000000;") == 0x80000000
    assert value(f"add.f32 %r9, {small}, 0f80000000;") == 0x80000001


@pytest.mark.parametrize(
    ("mode", "b", "c", "source"),
    [
        ("up", 3, 0, np.where(LANE >= 3, LANE - 3, LANE)),
        ("down", 5, 31, np.where(LANE + 5 <= 31, LANE + 5, LANE)),
        ("bfly", 9, 31, LANE ^ 9),
        ("idx", 7, 31, LANE * 0 + 7),
        ("idx", 39, 31, LANE * 0 + 7),  # modulo 32
        ("down", 3, 0x1807, np.where(LANE % 8 + 3 <= 7, LANE + 3, LANE)),  # segments of 8
        ("up", 1, 0x1800, np.where(LANE % 8 >= 1, LANE - 1, LANE)),
        ("idx", 2, 0x1807, LANE // 8 * 8 + 2),
        ("bfly", 16, 0x0F, np.where((LANE ^ 16) <= 15, LANE ^ 16, LANE)),  # out of range above the clamp
    ],
)
def test_shuffles(mode: str, b: int, c: int, source: Array) -> None:
    given = (LANE * 1000 + 17).astype(np.uint32)
    out = execute(f"{LOAD} shfl.sync.{mode}.b32 %r9, %r1, {b}, {c}, -1; {STORE}", given)
    np.testing.assert_array_equal(out, given[source])


def test_a_shuffle_says_who_was_out_of_range() -> None:
    out = execute(f"shfl.sync.down.b32 %r2|%p1, %r99, 5, 31, -1; selp.b32 %r9, 1, 0, %p1; {STORE}")
    np.testing.assert_array_equal(out, LANE + 5 <= 31)


def test_votes_and_reductions() -> None:
    odd = "and.b32 %r2, %r99, 1; setp.eq.s32 %p1, %r2, 1;"
    assert value(f"{odd} vote.sync.ballot.b32 %r9, %p1, -1;") == 0xAAAAAAAA
    assert value(f"{odd} vote.sync.all.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;") == 0
    assert value(f"{odd} vote.sync.any.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;") == 1
    assert value("redux.sync.add.s32 %r9, %r99, -1;") == 496


def test_lanes_that_a_branch_parted_meet_again() -> None:
    body = f"""
    setp.lt.s32 %p1, %r99, 10;
    mov.b32 %r1, 5;
    @%p1 bra $other;
    mov.b32 %r1, 7;
$other:
    shfl.sync.bfly.b32 %r9, %r1, 31, 31, -1;
    {STORE}
    """
    np.testing.assert_array_equal(execute(body), np.where((LANE ^ 31) < 10, 5, 7))


def test_warps_wait_for_each_other_at_a_barrier() -> None:
    body = f"""
    shl.b32 %r1, %r99, 2;
    setp.lt.s32 %p1, %r99, 32;
    @%p1 bra $first;
    mov.b32 %r2, 0;
$loop:
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p2, %r2, 20;
    @%p2 bra $loop;
$first:
    st.shared.b32 [%r1], %r99;
    bar.sync 0;
    xor.b32 %r1, %r1, 128;
    ld.shared.b32 %r9, [%r1];
    {STORE}
    """
    for apart in (False, True):
        np.testing.assert_array_equal(execute(body, threads=64, apart=apart), np.arange(64) ^ 32)
    missing = execute(body.replace("bar.sync 0;", ""), threads=64, apart=True)
    assert (missing[:32] != np.arange(32, 64)).any()


def test_a_barrier_that_some_do_not_reach() -> None:
    body = "setp.lt.s32 %p1, %r99, 32; @%p1 bra $one; bar.sync 1, 64; bra $end; $one: bar.sync 2, 64; $end:"
    with pytest.raises(Fault, match="no thread can go on"):
        execute(body, threads=64)


COPY = "cvta.shared.u64 %rd5, memory; cvta.to.shared.u64 %rd5, %rd5; cvt.u32.u64 %r5, %rd5; "


def copied(operands: str, between: str = "cp.async.commit_group; cp.async.wait_group 0;") -> Array:
    """Four words of the first thread's copy into shared memory that held ones."""
    given = np.arange(100, 132).astype(np.uint32)
    clear = "st.shared.v4.b32 [%r5], {-1, -1, -1, -1};"
    copy = (
        f"setp.eq.s32 %p1, %r99, 0; setp.ne.s32 %p2, %r99, 0; @%p1 cp.async.ca.shared.global [%r5], [%rd1], {operands};"
    )
    read = "bar.sync 0; shl.b32 %r6, %r99, 2; and.b32 %r6, %r6, 12; ld.shared.b32 %r9, [%r6];"
    return execute(COPY + clear + copy + between + read + STORE, given)[:4]


def test_copies_fill_with_zeros() -> None:
    np.testing.assert_array_equal(copied("16"), [100, 101, 102, 103])
    np.testing.assert_array_equal(copied("16, 8"), [100, 101, 0, 0])
    np.testing.assert_array_equal(copied("16, 0"), [0, 0, 0, 0])
    np.testing.assert_array_equal(copied("16, %p1"), [0, 0, 0, 0])  # ignore-src
    np.testing.assert_array_equal(copied("16, %p2"), [100, 101, 102, 103])


def test_a_copy_that_is_not_waited_for_has_not_arrived() -> None:
    ones = [0xFFFFFFFF] * 4
    np.testing.assert_array_equal(copied("16", ""), ones)
    np.testing.assert_array_equal(copied("16", "cp.async.commit_group; cp.async.wait_group 1;"), ones)
    np.testing.assert_array_equal(copied("16", "cp.async.wait_all;"), [100, 101, 102, 103])


def test_atomics_come_one_after_the_other() -> None:
    out = execute("atom.global.add.u32 %r1, [%rd2], 3; atom.global.max.s32 %r2, [%rd2+4], %r99;", out=np.zeros(2, "u4"))
    np.testing.assert_array_equal(out, [96, 31])
    out = execute("atom.global.cas.b32 %r1, [%rd2], 0, 9; atom.global.inc.u32 %r1, [%rd2+4], 4;", out=np.zeros(2, "u4"))
    np.testing.assert_array_equal(out, [9, 32 % 5])


def test_matrices_from_shared_memory_and_their_product() -> None:
    """ldmatrix with and without .trans gives A and B of mma.m16n8k16 as the figures of the manual have them."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    body = """
    mul.wide.u32 %rd8, %r99, 8; add.s64 %rd8, %rd1, %rd8;
    ld.global.b64 %rd3, [%rd8]; ld.global.b64 %rd4, [%rd8+256]; ld.global.b64 %rd5, [%rd8+512];
    shl.b32 %r1, %r99, 3; st.shared.b64 [%r1], %rd3; st.shared.b64 [%r1+256], %rd4; st.shared.b64 [%r1+512], %rd5;
    bar.sync 0;
    and.b32 %r2, %r99, 15; shl.b32 %r2, %r2, 5; and.b32 %r3, %r99, 16; add.s32 %r3, %r2, %r3;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r3];
    and.b32 %r2, %r99, 15; shl.b32 %r2, %r2, 4;
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r2+512];
    mov.b32 %r0, 0f3F800000;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%r20, %r21, %r22, %r23}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%r0, %r0, %r0, %r0};
    shr.u32 %r4, %r99, 2; shl.b32 %r4, %r4, 5; and.b32 %r5, %r99, 3; shl.b32 %r5, %r5, 3; add.s32 %r4, %r4, %r5;
    cvt.u64.u32 %rd6, %r4; add.s64 %rd6, %rd2, %rd6;
    st.global.v2.b32 [%rd6], {%r20, %r21}; st.global.v2.b32 [%rd6+256], {%r22, %r23};
    """
    given = np.concatenate([a.reshape(-1), b.reshape(-1)])
    out = execute(body, given, out=np.zeros((16, 8), np.float32))
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32) + 1)


def test_registers_that_nothing_wrote_hold_noise() -> None:
    assert len(set(execute(f"mov.b32 %r9, %r77; {STORE}").tolist())) > 16


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("ld.global.b32 %r1, [%rd1+128];", "in no array"),
        ("ld.global.b32 %r1, [%rd1+2];", "not aligned to 4"),
        ("ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1+8];", "not aligned to 16"),
        ("mov.b32 %r1, 1024; st.shared.b32 [%r1], 0;", "outside of 1024 bytes"),
        ("setp.eq.s32 %p1, %r99, 0; @%p1 shfl.sync.idx.b32 %r1, %r99, 0, 31, -1;", "the mask is 0xffffffff"),
        ("div.s32 %r1, 1, 0;", "by zero"),
        ("trap;", "stops by itself"),
    ],
)
def test_faults(body: str, what: str) -> None:
    with pytest.raises(Fault, match=what):
        execute(body)


@pytest.mark.parametrize(
    "instruction",
    [
        "wgmma.fence.sync.aligned",
        "mbarrier.init.shared.b64 [%r1], 1",
        "cp.async.bulk.commit_group",
        "call.uni f, (p)",
        "add.cc.u32 %r1, %r2, %r3",
    ],
)
def test_what_is_not_known_is_named(instruction: str) -> None:
    with pytest.raises(Unknown, match=instruction.split()[0]):
        execute(instruction + ";")


def test_the_text_is_split_into_instructions() -> None:
    program = Program.parse(text("$L: @!%p1 ld.global.L1::no_allocate.v2.b32 {%r1, %r2}, [%rd1+-8]; { .reg .b32 q; }"))
    i = next(i for i in program.instructions if i.guard)
    assert i.guard is not None and i.guard.negated and i.guard.name.startswith("%p1#")
    assert str(i) == "ld.global.L1::no_allocate.v2.b32"
    pair, place = i.operands
    assert isinstance(pair, Group) and len(pair.parts) == 2 and isinstance(place, Place) and place.offset == -8
    assert program.labels["$L"] == program.instructions.index(i)
    assert [(p.start, p.size) for p in program.parameters] == [(0, 8), (8, 8)]

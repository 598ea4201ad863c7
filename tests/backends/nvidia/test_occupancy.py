"""One block more at a time: when it is asked for, and when it is taken."""

from __future__ import annotations

import pytest

from weft.backends.nvidia import occupancy
from weft.backends.nvidia.ptxas import MachineCode
from weft.base import CompilerCrash
from weft.machines import machine_of

HOPPER = machine_of("cuda:90")


def assembled(monkeypatch: pytest.MonkeyPatch, first: int, second: tuple[int, int] | None, **more: object) -> tuple:
    """(registers of what is taken, the options of each call) where ptxas says so of both."""
    calls: list[tuple[str, ...]] = []

    def assemble(ptx: str, arch: str, *, maxnreg: int | None = None, options: tuple[str, ...] = ()) -> MachineCode:
        calls.append(options)
        if not options:
            spilled = int(str(more.get("spilled", 0)))
            stack = int(str(more.get("stack", 0)))
            return MachineCode(b"", str(more.get("by", "ptxas")), first, spilled_bytes=spilled, stack_bytes=stack)
        if second is None:
            raise CompilerCrash("no such option", "assembling")
        return MachineCode(b"", "ptxas", registers=second[0], spilled_bytes=second[1], log=str(more.get("log", "")))

    monkeypatch.setattr(occupancy, "assemble", assemble)
    found = occupancy.assemble_for(
        str(more.get("ptx", "")), "sm_90a", threads=more.get("threads", 256),
        shared=more.get("shared", 96 << 10),
        maxnreg=more.get("maxnreg"),
    )  # fmt: skip
    return found.registers, calls


def test_a_block_more_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert assembled(monkeypatch, 130, (128, 16)) == (128, [(), ("--minnctapersm=2",)])


@pytest.mark.parametrize(("ptx", "taken", "asked"), [("bar.sync \t0;", 32, ["--minnctapersm=4"]), ("", 37, [])])
def test_blocks_that_wait_at_barriers_are_as_many_as_there_may_be(
    monkeypatch: pytest.MonkeyPatch, ptx: str, taken: int, asked: list[str]
) -> None:
    calls = [(), *[(option,) for option in asked]]
    assert assembled(monkeypatch, 37, (32, 0), threads=512, shared=64, ptx=ptx) == (taken, calls)


def test_blocks_beyond_half_of_the_warps_are_not_bought_with_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two words of each thread were a third of what a layer norm had to move at all."""
    calls = [(), ("--minnctapersm=4",)]
    assert assembled(monkeypatch, 35, (32, 16), threads=512, shared=64, ptx="bar.sync \t0;") == (35, calls)


def test_what_spills_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert assembled(monkeypatch, 150, (128, 40)) == (150, [(), ("--minnctapersm=2",)])


def test_what_serializes_products_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    log = "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
    assert assembled(monkeypatch, 130, (128, 0), log=log) == (130, [(), ("--minnctapersm=2",)])


def test_two_blocks_of_products_are_enough() -> None:
    assert [occupancy.one_more(HOPPER, 128, 64 << 10, 184, multiplies=m) for m in (False, True)] == [3, 0]
    assert occupancy.one_more(HOPPER, 256, 96 << 10, 130, multiplies=True) == 2


def test_half_of_the_warps_are_enough() -> None:
    assert [occupancy.one_more(HOPPER, 128, 0, registers) for registers in (40, 64, 72)] == [0, 0, 8]


@pytest.mark.parametrize("registers", [96, 128, 168, 255])
def test_where_nothing_is_to_be_had_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, registers: int) -> None:
    """Registers do not limit it, or there are far too many."""
    assert assembled(monkeypatch, registers, (128, 0)) == (registers, [()])


@pytest.mark.parametrize(("first", "second", "taken"), [(32, 2000, 255), (32, 5000, 32), (240, 100, 240)])
def test_registers_that_were_kept_back_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, first: int, second: int, taken: int
) -> None:
    """Where there are more, and with them half is spilled at most."""
    found, calls = assembled(monkeypatch, first, (255, second), spilled=8000)
    assert found == taken
    assert calls == ([(), ("--minnctapersm=1",)] if first == 32 else [()])


@pytest.mark.parametrize(("frame", "calls"), [(9768, 1), (4904, 2), (2488, 2)])
def test_what_no_registers_can_hold_is_assembled_once(monkeypatch: pytest.MonkeyPatch, frame: int, calls: int) -> None:
    """Of a tile of 512 x 256 in 128 threads nearly all is on the stack whatever ptxas may take, which takes minutes. A
    group norm of 65,536 elements has 2,600 bytes left of 4,904 with all registers, and is twice as fast."""
    found = assembled(monkeypatch, 32, (255, 7000), spilled=15_000, stack=frame)
    assert found == ((32, [()]) if calls == 1 else (255, [(), ("--minnctapersm=1",)]))


LOOP = "$L__BB0_2:\n\t{}.global.b32 \t%r1, [%rd1];\n\t@%p1 bra \t$L__BB0_2;"


@pytest.mark.parametrize(("threads", "what", "second", "taken"), [
    (32, "ld", (80, 0), 80), (32, "ld", (120, 0), 72), (32, "ld", (80, 8), 72), (32, "st", (80, 0), 72),
])  # fmt: skip
def test_loads_of_a_loop_come_first_in_a_block_of_one_warp(
    monkeypatch: pytest.MonkeyPatch, threads: int, what: str, second: tuple[int, int], taken: int
) -> None:
    """Where that takes a few registers more at most, and none of them in memory."""
    found, calls = assembled(monkeypatch, 72, second, threads=threads, ptx=LOOP.format(what))
    assert found == taken
    assert calls == [(), ("--minnctapersm=1",)][: 2 if what == "ld" else 1]


def iteration(words: int, product: str = "") -> str:
    """A loop that loads so many words, of which each is added to a sum that is carried."""
    loads = "".join(f"\tld.global.b32 \t%r{words + i}, [%rd{i}];\n" for i in range(words))
    sums = "".join(f"\tadd.f32 \t%r{i}, %r{i}, %r{words + i};\n" for i in range(words))
    return f"$L__BB0_2:\n{loads}{sums}{product}\t@%p1 bra \t$L__BB0_2;"


@pytest.mark.parametrize(("first", "second", "taken", "asked"), [
    (32, (46, 0), 46, 10),  # 16 blocks become 10: more than half of the warps stay
    (32, (46, 8), 32, 10),
    (40, (46, 0), 40, 0),   # all that is loaded has room
])  # fmt: skip
def test_blocks_are_given_up_so_that_all_loads_of_a_turn_are_on_their_way(
    monkeypatch: pytest.MonkeyPatch, first: int, second: tuple[int, int], taken: int, asked: int
) -> None:
    found, calls = assembled(monkeypatch, first, second, threads=128, shared=32, ptx=iteration(17))
    assert found == taken
    assert calls == ([(), (f"--minnctapersm={asked}",)] if asked else [()])


@pytest.mark.parametrize(("words", "first", "asked"), [
    (32, 38, 10),  # 13 blocks become 10
    (32, 40, 0),   # all that is loaded has room
    (24, 31, 0),   # ptxas has 32 registers for each thread of all warps
    (64, 43, 0),   # more at a time is slower
])  # fmt: skip
def test_programs_without_loops_have_room_for_their_loads(
    monkeypatch: pytest.MonkeyPatch, words: int, first: int, asked: int
) -> None:
    loads = "".join(f"\tld.global.b32 \t%r{i}, [%rd{i}];\n" for i in range(words))
    ptx = loads + "".join(f"\tst.shared.b32 \t[%r{words + i}], %r{i};\n" for i in range(words))
    found, calls = assembled(monkeypatch, first, (48, 0), threads=128, shared=16 << 10, ptx=ptx)
    assert found == (48 if asked else first)
    assert calls == ([(), (f"--minnctapersm={asked}",)] if asked else [()])


@pytest.mark.parametrize(("words", "registers", "asked"), [(57, 96, 4), (65, 128, 0), (150, 255, 0)])
def test_a_block_of_five_is_given_up_not_one_of_four(words: int, registers: int, asked: int) -> None:
    """And none where no registers could hold it."""
    assert occupancy.fewer(HOPPER, 128, 4096, registers, 2 * words) == asked


def test_loops_that_multiply_keep_their_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    ptx = iteration(17, "\tmma.sync.aligned.m16n8k16 {%r1}, {%r2}, {%r3}, {%r1};\n")
    assert assembled(monkeypatch, 32, (46, 0), threads=128, shared=32, ptx=ptx) == (32, [()])


def test_an_assembler_without_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    assert assembled(monkeypatch, 130, None)[0] == 130


@pytest.mark.parametrize(
    "more", [{"maxnreg": 130}, {"by": "nvjitlink"}, {"ptx": "setmaxnreg.dec.sync.aligned.u32 40;"}]
)
def test_registers_that_somebody_chose_stay(monkeypatch: pytest.MonkeyPatch, more: dict) -> None:
    assert assembled(monkeypatch, 130, (128, 0), **more) == (130, [()])


@pytest.mark.parametrize(("spilled", "alone", "taken"), [(120, 0, 64), (900, 0, 128), (900, 600, 64)])
def test_a_program_for_two_blocks_that_spills_is_for_one(
    monkeypatch: pytest.MonkeyPatch, spilled: int, alone: int, taken: int
) -> None:
    """A few words are less than a second block brings; of much, half must be gone."""

    def assemble(ptx: str, arch: str, *, maxnreg: int | None = None, options: tuple[str, ...] = ()) -> MachineCode:
        asked = ".minnctapersm 2\n" in ptx
        assert ".reqntid 512" in ptx and not options
        return MachineCode(b"", "ptxas", 64 if asked else 128, spilled_bytes=spilled if asked else alone)

    monkeypatch.setattr(occupancy, "assemble", assemble)
    ptx = ".visible .entry f(\n)\n.reqntid 512\n.minnctapersm 2\n{\n}\n"
    assert occupancy.assemble_for(ptx, "sm_90a", threads=512, shared=0).registers == taken

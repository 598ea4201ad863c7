"""Loops, branches and partitions as PTX, what loops carry, and diagnostics."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from ptx.launching import launch
from sim.kit import Kit
from weft.backends.gpu import Emitted
from weft.backends.nvidia import emit, machine
from weft.base import Unsupported
from weft.ir.lane import Block, LaneProgram, Parameter, Value, verify
from weft.machines import machine_of

from .assembling import TARGETS, assembled, code, kinds, needs_ptxas


def _phis(emitted: Emitted) -> dict[str, int]:
    """How many phi nodes of each type."""
    found: dict[str, int] = {}
    for kind in re.findall(r"= phi (\w+) ", emitted.llir):
        found[kind] = found.get(kind, 0) + 1
    return found


def _pointers(step: Any) -> LaneProgram:
    """A loop that carries eight addresses with distances of 4 KiB; `step` moves them."""
    kit = Kit("x:f32*", "n:i32", target="cuda:80")
    rows = kit.op("arith.extsi", [kit.linear([4096 * i for i in range(8)], lane=(4, 8, 16, 32, 64))], "i64")
    addresses = kit.op("arith.addi", [kit.arg("x"), rows], "i64")
    total = kit.rename(kit.constant("f32", 0.0), [0] * 8)

    def body(index: Value, at: Value, sums: Value) -> tuple[Value, Value]:
        value = kit.load("global", at, "f32")
        return step(kit, at), kit.op("arith.addf", [sums, value], "f32")

    _, sums = kit.loop([kit.int(0), kit.arg("n"), kit.int(1)], [addresses, total], body)
    kit.store("global", addresses, sums)
    return kit.program()


def _all_alike(kit: Kit, at: Value) -> Value:
    return kit.op("arith.addi", [at, kit.constant("i64", 128)], "i64")


def _each_its_own(kit: Kit, at: Value) -> Value:
    return kit.op("arith.addi", [at, kit.op("arith.extsi", [kit.linear([128 * i for i in range(8)])], "i64")], "i64")


def test_addresses_with_fixed_distances_are_carried_in_one_register() -> None:
    emitted = emit(_pointers(_all_alike))
    assert _phis(emitted)["i64"] == 2  # in the loop and after it
    assert sum("ld.global" in line for line in code(emitted.code)) == 8


def test_addresses_that_part_are_carried_apart() -> None:
    emitted = emit(_pointers(_each_its_own))
    assert _phis(emitted)["i64"] == 16
    assert sum("ld.global" in line for line in code(emitted.code)) == 8


def _rows(step_by_argument: bool, later: bool, copies: bool) -> LaneProgram:
    """A loop that carries the addresses of four rows that lie n apart, and moves them by n elements or by 256 bytes;
    `later`: it loads from where it was moved to; `copies`: it has a copy into shared memory.
    """
    kit = Kit("x:f32*", "n:i32", "m:i32", target="cuda:80")
    base = kit.shared(512)
    n = kit.arg("n")
    rows = kit.op("arith.muli", [kit.linear([0, 1, 2, 3], lane=(4, 8, 16, 32, 64)), n], "i32")
    addresses = kit.op("arith.addi", [kit.arg("x"), kit.op("arith.extsi", [rows], "i64")], "i64")
    wide = kit.op("arith.muli", [kit.op("arith.extsi", [n], "i64"), kit.constant("i64", 4)], "i64")
    step = wide if step_by_argument else kit.constant("i64", 256)

    def body(index: Value, at: Value, sums: Value) -> tuple[Value, Value]:
        following = kit.op("arith.addi", [at, step], "i64")
        if copies:
            kit.copy_async(kit.add2(base, kit.thread((0,), 4)), kit.place("x", kit.thread()), 4)
        value = kit.load("global", following if later else at, "f32")
        return following, kit.op("arith.addf", [sums, value], "f32")

    total = kit.rename(kit.constant("f32", 0.0), [0] * 4)
    _, sums = kit.loop([kit.int(0), kit.arg("m"), kit.int(1)], [addresses, total], body)
    kit.store("global", addresses, sums)
    return kit.program()


@pytest.mark.parametrize("by_argument", [False, True])
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("copies", [False, True])
def test_addresses_that_move_by_one_distance_have_one_way(by_argument: bool, later: bool, copies: bool) -> None:
    """In a loop with copies the way alone is carried; a distance that an argument tells is no product of 32 bits."""
    emitted = emit(_rows(by_argument, later, copies))
    loop = re.search(r"\n(body\d+):.*?br i1", emitted.llir, re.DOTALL)
    assert loop is not None and len(re.findall(r"= phi i64", loop[0])) == (1 if copies else 4), emitted.llir
    assert emitted.llir.count('asm "shl.b64') == by_argument
    iteration = re.search(r"(\$L__BB\d+_\d+):(?:(?!\n\$L).)*?bra\s+\1", emitted.code, re.DOTALL)
    assert iteration is not None, emitted.code
    body = iteration[0]
    assert body.count("ld.global") == 4 and "wide" not in body, body
    assert body.count("add.s64") == (5 if copies or by_argument else 4), body


def test_halves_are_carried_in_words() -> None:
    kit = Kit("x:f16*", "n:i32", target="cuda:80")
    place = kit.place("x", kit.thread((0,), 8))
    value = kit.load("global", place, "f16", 8)
    (total,) = kit.loop(
        [kit.int(0), kit.arg("n"), kit.int(1)], [value], lambda i, x: (kit.op("arith.addf", [x, value], "f16"),)
    )
    kit.store("global", place, total, 8)
    emitted = emit(kit.program())
    assert _phis(emitted) == {"i32": 1 + 4 + 4}
    assert "add.f16x2" in kinds(emitted.code)


def _branch(kit: Kit) -> None:
    place = kit.place("x", kit.thread())
    value = kit.load("global", place, "i32")
    (found,) = kit.when(
        kit.less(kit.int(0), kit.arg("n")),
        lambda: (kit.add2(value, 1),),
        lambda: (kit.mul(value, 3),),
        [("i32", 1)],
    )
    kit.store("global", place, found)


def _until(kit: Kit) -> None:
    """while x > n: x = x / 2"""
    place = kit.place("x", kit.thread())
    value = kit.load("global", place, "i32")
    (found,) = kit.repeat(
        [value],
        lambda x: (kit.less(kit.arg("n"), x), x),
        lambda x: (kit.op("arith.divsi", [x, kit.int(2)], "i32"),),
    )
    kit.store("global", place, found)


def _leaves(kit: Kit) -> None:
    kit.when(kit.less(kit.arg("n"), kit.int(0)), lambda: kit.add("return") and ())
    kit.store("global", kit.place("x", kit.thread()), kit.int(1))


def _nested(kit: Kit) -> None:
    place = kit.place("x", kit.thread())

    def outer(i: Value, total: Value) -> tuple[Value]:
        def inner(j: Value, part: Value) -> tuple[Value]:
            return (kit.add2(part, kit.add2(i, j)),)

        (part,) = kit.loop([kit.int(0), i, kit.int(1)], [total], inner)
        return (part,)

    (total,) = kit.loop([kit.int(0), kit.arg("n"), kit.int(1)], [kit.int(0)], outer)
    kit.store("global", place, total)


def _prints(kit: Kit) -> None:
    values = [kit.load("global", kit.place("x", kit.thread()), "i32"), kit.constant("f16", 1.5), kit.arg("n")]
    kit.add("print", values, (), {"prefix": "50% of x: ", "hex": False})
    kit.add("print", [kit.constant("i64", 255)], (), {"prefix": "", "hex": True})


def _asserts(kit: Kit) -> None:
    value = kit.load("global", kit.place("x", kit.thread()), "i32")
    kit.add("assert", [kit.less(value, 10), kit.less(kit.thread(), 7)], (), {"message": 'too "large"'})
    kit.store("global", kit.place("x", kit.thread()), kit.int(1))


def _traps(kit: Kit) -> None:
    kit.when(kit.less(kit.arg("n"), kit.int(0)), lambda: kit.add("trap") and ())


def _votes(kit: Kit) -> None:
    odd = kit.op("arith.trunci", [kit.thread()], "i1")
    found = kit.add("ballot", [odd], [("i32", 1)]).result
    wide = kit.op("arith.extui", [found], "i64")
    moved = kit.shuffle_xor(wide, [16])
    low = kit.shuffle(kit.op("arith.trunci", [moved], "i8"), kit.int(3))
    kit.store("global", kit.place("x", kit.thread()), kit.op("arith.extsi", [low], "i32"))


def _waits(kit: Kit) -> None:
    for kind in ("block", "device", "system"):
        kit.add("fence", (), (), {"kind": kind})
    kit.barrier()
    kit.barrier("warp")
    kit.add("barrier", (), (), {"scope": "block", "inserted": False, "id": 3, "warps": 2})


PROGRAMS = (_branch, _until, _leaves, _nested, _prints, _asserts, _traps, _votes, _waits)


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("write", PROGRAMS, ids=[p.__name__.strip("_") for p in PROGRAMS])
def test_assembles(write: Any, target: str) -> None:
    kit = Kit("x:i32*", "n:i32", warps=4, target=target)
    write(kit)
    assembled(kit.program())


def _ptx(write: Any, warps: int = 4) -> str:
    kit = Kit("x:i32*", "n:i32", warps=warps, target="cuda:80")
    write(kit)
    return emit(kit.program()).code


def test_printing_and_assertions_call_what_cuda_has() -> None:
    assert "vprintf" in _ptx(_prints)
    ptx = _ptx(_asserts)
    assert "__assertfail" in ptx
    assert "bra" not in ptx[ptx.index("call.uni __assertfail") :], "nobody comes back from it"
    assert "trap;" in _ptx(_traps)


def test_barriers() -> None:
    found = [line for line in code(_ptx(_waits)) if "bar" in line or "fence" in line]
    assert found == [
        "fence.acq_rel.cta;",
        "fence.acq_rel.gpu;",
        "fence.acq_rel.sys;",
        "bar.sync 0;",
        "bar.warp.sync -1;",
        "bar.sync 3, 64;",
    ]
    alone = [line for line in code(_ptx(lambda kit: kit.barrier(), warps=1)) if "bar" in line]
    assert alone == ["bar.warp.sync -1;"]


def test_wide_values_are_shuffled_in_two_words() -> None:
    found = kinds(_ptx(_votes))
    assert found.count("shfl.sync.bfly.b32") == 2  # the third would be of a byte, by computed lane
    assert found.count("shfl.sync.idx.b32") == 1


def _partitioned(target: str) -> LaneProgram:
    """The first four warps write ones, the next two their own number counted from their first."""
    kit = Kit("x:i32*", warps=8, target=target)
    regions = []
    for start, count in ((0, 4), (5, 2)):
        kit.block = Block()
        warps = tuple(32 << i for i in range((count - 1).bit_length()))
        at = kit.linear((0,), lane=(1, 2, 4, 8, 16), warp=warps)
        kit.add("barrier", (), (), {"scope": "block", "inserted": True, "id": 1 + start, "warps": count})
        kit.store("global", kit.place("x", at), at if start else kit.int(1))
        kit.add("yield")
        regions.append(kit.block)
    kit.block = kit.body
    kit.add("partitions", (), (), {"starts": (0, 5), "warps": (4, 2)}, regions)
    kit.add("return")
    return kit.program()


@needs_ptxas
def test_partitions() -> None:
    emitted, _ = assembled(_partitioned("cuda:90"))
    lines = code(emitted.code)
    assert {line for line in lines if line.startswith("bar.sync")} == {"bar.sync 1, 128;", "bar.sync 6, 64;"}
    assert any(re.match(r"xor\.b32 %r\d+, %r\d+, 32;", line) for line in lines)  # (thread - 160) % 64


PARAMETERS = (
    Parameter("p", "ptr", "f32"),
    Parameter("flag", "i1"),
    Parameter("byte", "i8"),
    Parameter("half", "f16"),
    Parameter("brain", "bf16"),
    Parameter("single", "f32"),
    Parameter("double", "f64"),
    Parameter("number", "i64"),
    Parameter("map", "tensormap"),
)


def _with_parameters(scratch: int) -> LaneProgram:
    kit = Kit(target="cuda:90")
    body = Block(tuple(Value("i64" if p.elem in ("ptr", "tensormap") else p.elem, 1) for p in PARAMETERS))
    kit.block = kit.body = body
    flag, single, number = (body.arguments[i] for i in (1, 5, 7))
    chosen = kit.select(flag, single, kit.op("arith.extf", [body.arguments[3]], "f32"))
    kit.store(
        "global", body.arguments[0], kit.op("arith.addf", [chosen, kit.op("arith.sitofp", [number], "f32")], "f32")
    )
    if scratch:
        place = kit.add("scratch", (), [("i64", 1)], {"offset": 128}).result
        kit.store("global", place, body.arguments[8])
    program = LaneProgram("a kernel.1", machine_of("cuda:90"), PARAMETERS, body, 1, scratch=scratch)
    verify(program)
    return program


@needs_ptxas
def test_parameters() -> None:
    """The ABI: every parameter in its own size, global memory of the programs' own last."""
    emitted, _ = assembled(_with_parameters(256))
    assert emitted.name == "a_kernel_1"
    head = emitted.code[emitted.code.index(".entry") : emitted.code.index(")")]
    sizes = re.findall(r"\.param (?:\.align \d+ )?\.(\w+)(?:[^\n]*\[(\d+)\])?", head)
    assert sizes == [
        *((size, "") for size in ("u64", "u8", "u8", "u16", "u16", "f32", "f64", "u64")),
        ("b8", "128"),
        ("u64", ""),
    ]
    assert emitted.metadata["global_scratch_size"] == 256
    assert emitted.metadata["params"][:4] == ["*fp32", "i1", "i8", "fp16"]
    assert emit(_with_parameters(0)).metadata["global_scratch_size"] == 0


def test_clusters() -> None:
    kit = Kit("x:i32*", target="cuda:90")
    kit.store("global", kit.place("x", kit.thread()), kit.add("program_id", (), [("i32", 1)], {"axis": 0}).result)
    kit.barrier("cluster")
    program = kit.program()
    program.blocks = 2
    ptx = emit(program).code
    assert "%clusterid.x" in ptx and "barrier.cluster.arrive.aligned" in ptx
    assert re.search(r"\.reqnctapercluster 2|\.explicitcluster", ptx)


def test_registers_may_be_limited() -> None:
    kit = Kit("x:i32*", target="cuda:80")
    kit.store("global", kit.place("x", kit.thread()), kit.int(1))
    assert ".maxnreg 64" in emit(kit.program(), maxnreg=64).code


@pytest.mark.parametrize("target", ["hip:gfx942", "xpu:pvc"])
def test_a_target_that_there_is_not(target: str) -> None:
    kit = Kit(target=target)
    with pytest.raises(Unsupported, match=target):
        emit(kit.program())


@weft.jit
def wait(flag, out):
    while tl.load(flag) == 0:
        pass
    tl.store(out, 1)


def test_a_loop_that_waits_loads_anew_in_every_turn() -> None:
    ptx = weft.compile(weft.ASTSource(wait, {"flag": "*i32", "out": "*i32"}), target="cuda:80").asm["ptx"]
    head = re.search(r"bra(?:\.uni)?\s+(\$L__BB\w+)", ptx)
    assert head is not None
    assert "ld.global" in ptx[ptx.index(f"{head[1]}:") : head.start()]


def test_a_program_may_end_with_a_branch() -> None:
    """Without an operation that returns, there too the program returns."""
    kit = Kit("x:i32*", target="cuda:80")
    kit.when(kit.equal(kit.thread(), 1), lambda: kit.store("global", kit.place("x", kit.thread()), kit.int(1)) or ())
    emitted = emit(kit.program())
    assert "unreachable" not in emitted.llir
    assert any("ret;" in line for line in code(emitted.code))


# -- many loops --------------------------------------------------------------------------------------------------------


@weft.jit
def many_whiles(x, out, n, LOOPS: tl.constexpr):
    i = tl.arange(0, 64)
    a = tl.load(x + i)
    for iteration in tl.static_range(LOOPS):
        j = iteration % 4
        while j < n:
            a = a * 3 + j
            j += 1
        while tl.max(a) % 5 > iteration % 3:
            a = a + 1
    tl.store(out + i, a)


def test_many_loops_of_while_are_entered_by_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then does LLVM count their iterations in time that grows with them; the values are those of any form."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 100, 64, np.int32)
    rotations: list[bool] = []
    passes = machine._passes

    def watched(ordered: bool, rotated: bool) -> object:
        rotations.append(rotated)
        return passes(ordered, rotated)

    monkeypatch.setattr(machine, "_passes", watched)

    def found(loops: int) -> np.ndarray:
        out = np.zeros(64, np.int32)
        launch(many_whiles, (1,), {"x": x, "out": out, "n": 5, "LOOPS": loops}, "cuda:90")
        return out

    for loops in (4, 40):
        a = x.astype(np.int32)
        with np.errstate(over="ignore"):
            for iteration in range(loops):
                for j in range(iteration % 4, 5):
                    a = a * np.int32(3) + np.int32(j)
                while np.fmod(a.max(), 5) > iteration % 3:
                    a = a + np.int32(1)
        np.testing.assert_array_equal(found(loops), a)
        assert rotations[-1] == (loops == 40)

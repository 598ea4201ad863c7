"""The programs that run each instruction alone on a GPU (tests/gpu/test_isa.py): for all of the table, and right."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.isa_memory import FAMILIES, ITERATIONS, cases
from gpu.test_isa import AROUND, GROUPS, MOVES, PLAIN, PRODUCTS, REST
from weft.backends.nvidia import emit
from weft.sim import Options, run
from weft.targets.nvidia import INSTRUCTIONS

from .kit import Kit


def test_every_entry_of_the_table_is_run_alone() -> None:
    """A new entry needs a program."""
    tested = {entry.name for entries in (PLAIN, PRODUCTS, MOVES, GROUPS, AROUND, REST) for entry in entries}
    assert set(INSTRUCTIONS) == tested


NAMES = list(dict.fromkeys(name for names, _ in FAMILIES.values() for name in names))
SOME = [n for n in NAMES if not n.startswith("cp.async.bulk.tensor") or n.split(".")[4] in ("1d", "2d", "5d")]


@pytest.mark.parametrize("name", SOME)
def test_the_program_is_right(name: str) -> None:
    """In the simulator, which says of races, waits without end and what was never written; and its bytes come."""
    for case in cases(name, False):
        before = {n: v.copy() for n, v in case.arguments.items() if isinstance(v, np.ndarray)}
        report = run(case.program, case.grid, case.arguments, Options(copies="earliest"))
        assert not report.errors
        assert any(op.attrs.get("isa") == name for op in case.program.body.walk()) or name.startswith(ORDERING)
        came = case.arguments.get("z")
        assert came is None or came.all(), "what was waited for did not come"
        assert "y" not in before or name == "lop3" or (case.arguments["y"] != before["y"]).any()


ORDERING = (
    "bar.",
    "cluster_barrier.",
    "fence.",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "mbarrier.arrive.once",
)


@pytest.mark.parametrize("name", [n for n in SOME if ".tensor." not in n or n.endswith(("load", "store", "inc"))])
@pytest.mark.thinned(2)
def test_the_program_has_the_tables_own_text(name: str) -> None:
    words = INSTRUCTIONS[name].text.replace("@<active> ", "").split("<")[0].split("[")[0].split(";")[0].strip(" {")
    text = (
        words if "{" not in INSTRUCTIONS[name].text else "try_wait" if "try" in INSTRUCTIONS[name].text else "test_wait"
    )
    text = "bar." if name.startswith("turn.") else text
    assert any(text in emit(case.program).code for case in cases(name, True)), text


def test_a_question_is_no_deadlock() -> None:
    """Whoever asks once whether a phase has ended, and ends: the simulator looked for who waits."""
    k = Kit("y:i32*", warps=2)
    barrier = k.shared(8)
    k.when(k.equal(k.linear((0,), warp=(1,)), 0), lambda: k.instruction("mbarrier.init", [barrier, k.int(1)]) and ())
    k.barrier()
    for parity in (0, 1, 0):
        done = k.instruction("mbarrier.try_wait.parity", [barrier, k.int(parity)], [("i32", 1)]).result
        k.barrier()
        k.store("global", k.place("y", k.add2(k.thread(), 64 * parity)), done)
    y = np.full(128, -1, np.int32)
    run(k.program(), 3, {"y": y})
    np.testing.assert_array_equal(y, np.arange(128) // 64)
    assert ITERATIONS < 1 << 20, "what does not come is not waited for"

"""AMD's rows: the eight processors, in the order of their generations, and what is told of others."""

from __future__ import annotations

import numpy as np
import pytest

from weft import compiler
from weft.base import LayoutError, Unsupported
from weft.layouts import banks, f2
from weft.machines import MACHINES, closest, machine_of
from weft.machines.amd import ROWS, generation_of, nearest
from weft.machines.rows import meant, target_named
from weft.sim.memory import count_wavefronts

NAMES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1200", "gfx1201", "gfx1250"]


def test_the_processors_are_rows_in_the_order_of_their_generations() -> None:
    assert [row.name for row in ROWS] == [f"hip:{name}" for name in NAMES]
    generations = [row.generation for row in ROWS]
    assert generations == sorted(generations) == [int(name.removeprefix("gfx"), 16) for name in NAMES]
    assert [row.lanes for row in ROWS] == [64] * 3 + [32] * 5
    assert all(machine_of(f"sim:hip:{name}") is MACHINES[f"hip:{name}"] for name in NAMES)


@pytest.mark.parametrize("text", ["gfx90a", "hip:gfx90a", "sim:hip:gfx90a", "gfx90a:sramecc+:xnack-"])
def test_a_generation_is_the_hexadecimal_number_of_the_name(text: str) -> None:
    assert generation_of(text) == 0x90A
    assert meant(text) == ("amd", 0x90A)


@pytest.mark.parametrize(
    "text", ["gfx", "hip:", "gfx90z", "cuda:90", "90", "hip:942", "gfx9420", "gfx942a", "gfx120", "hip:gfx11000"]
)
def test_other_texts_mean_no_generation(text: str) -> None:
    assert generation_of(text) == 0


def test_code_runs_on_its_own_processor_alone() -> None:
    assert closest("amd", 0x942) is machine_of("hip:gfx942")
    assert closest("amd", 0x940) is closest("amd", 0x1030) is closest("amd", 0x1251) is None
    assert target_named("gfx1201") == "hip:gfx1201"


@pytest.mark.parametrize(
    ("generation", "names"),
    [
        (0x906, "the nearest that is compiled for is hip:gfx90a; "),
        (0x940, "the nearest that are compiled for are hip:gfx90a and hip:gfx942; "),
        (0x1030, "the nearest that are compiled for are hip:gfx950 and hip:gfx1100; "),
        (0x1251, "the nearest that is compiled for is hip:gfx1250; "),
    ],
)
def test_the_nearest_of_a_processor_without_a_row_are_named(generation: int, names: str) -> None:
    assert nearest(generation) == f"code of AMD is for one processor alone; {names}"


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("hip:gfx9420", "did you mean hip:gfx942? "),
        ("amd:gfx942", "did you mean hip:gfx942? "),
        ("cuda:gfx942", "did you mean hip:gfx942? "),
        ("hip:GFX942", "did you mean hip:gfx942? "),
        ("sim:amd:gfx1201", "did you mean sim:hip:gfx1201? "),
        ("sim:hip:gfx9420", "did you mean sim:hip:gfx942? "),
        ("hip:gfx11000", "did you mean hip:gfx1100? "),
        ("hip:gfx120", "did you mean hip:gfx1200? "),
        ("hip:gfx942:xnack+", "did you mean hip:gfx942? "),
        (
            "hip:gfx941",
            "code of AMD is for one processor alone; "
            "the nearest that are compiled for are hip:gfx90a and hip:gfx942; ",
        ),
    ],
)
def test_a_name_that_is_no_processors_is_one_misspelt(asked: str, hint: str) -> None:
    with pytest.raises(Unsupported) as error:
        compiler.as_target(asked)
    assert str(error.value) == (
        f"error: compiling is not supported on target {asked}\nhint: {hint}targets that exist: "
        f"{', '.join((*compiler.TARGETS, *compiler.SIMULATED))}; set WEFT_TARGET or use `with weft.target(...)`"
    )


def test_loops_have_two_stages_where_nobody_says_it() -> None:
    assert {row.stages for row in ROWS} == {2}  # as Triton's HIPOptions


def test_what_a_block_may_have() -> None:
    assert {row.name.removeprefix("hip:gfx"): row.shared_bytes >> 10 for row in ROWS} == {
        "90a": 64, "942": 64, "950": 160, "1100": 64, "1151": 64, "1200": 64, "1201": 64, "1250": 320,
    }  # fmt: skip
    assert [row.banks for row in ROWS] == [32, 32, 64, 32, 32, 32, 32, 64]
    with pytest.raises(LayoutError, match="the planner knows no machine 'hip:gfx906'"):
        machine_of("hip:gfx906")


def test_the_lanes_whose_16_bytes_are_loaded_together() -> None:
    """The published table; a column of rows of 128 bytes, and 16 bytes of each lane in a row."""
    first = [[*range(4), *range(20, 24)], [*range(4, 8), *range(16, 20)]]
    first += [[*range(8, 12), *range(28, 32)], [*range(12, 16), *range(24, 28)]]
    table = first + [[lane + 32 for lane in phase] for phase in first]
    machine = machine_of("hip:gfx942")
    order = f2.span(machine.load_phase)
    assert [sorted(order[at : at + 8]) for at in range(0, 64, 8)] == table
    rng = np.random.default_rng(0)
    active = np.ones((1, 64), np.bool_)
    for _ in range(50):
        address = rng.integers(0, 256, 64) * 16
        words = address[:, None] // 4 + np.arange(4)
        wanted = sum(np.bincount(np.unique(words[phase]) % 32).max() for phase in table)
        taken, _ = count_wavefronts(address[None], active, 16, True, machine)
        assert taken <= wanted  # two phases that want the same are one
        if len(set(address.tolist())) == 64:
            assert taken == wanted
    lanes = np.arange(64)
    for rotated in (lanes & 7, lanes >> 2 & 7):  # which of 8 chunks of its row a lane has
        address = (lanes * 128 + rotated * 16)[None]
        columns = [128 * (1 << i) + 16 * int(rotated[1 << i]) for i in range(6)]
        for load, by_lane in ((True, machine.served(columns)), (False, columns)):
            counted, _ = count_wavefronts(address, active, 16, load, machine)
            assert counted == banks.passes(by_lane, 3, 4, machine)[0]

"""Every fault applies to the sources as they are, and leaves a file that parses."""

from __future__ import annotations

import ast
from pathlib import Path

from .rules import drawn
from .run import BY_RULE, SEED, room_of
from .written import written

ROOT = Path(__file__).resolve().parents[2]


def test_every_fault_applies_and_parses() -> None:
    mutants = [*written(ROOT), *(drawn(seed, ROOT) for seed in range(SEED, SEED + 8))]
    assert len(written(ROOT)) + BY_RULE >= 100
    for mutant in mutants:
        source = (ROOT / mutant.path).read_text(encoding="utf-8")
        faulty = mutant.applied(source)
        assert faulty != source, mutant.told()
        ast.parse(faulty)


def test_a_seed_is_one_fault() -> None:
    assert drawn(SEED, ROOT) == drawn(SEED, ROOT)


def test_every_file_that_can_have_a_fault_has_tests_that_are_run_first() -> None:
    rooms = {room_of(mutant.path) for mutant in (drawn(seed, ROOT) for seed in range(SEED, SEED + BY_RULE))}
    rooms |= {room_of(mutant.path) for mutant in written(ROOT)}
    rooms |= {room_of(str(path.relative_to(ROOT))) for path in (ROOT / "src/weft").glob("*/*.py")}
    missing = [name for tests in rooms for name in tests if not (ROOT / name).exists()]
    assert not missing

"""What ptxas is known to assemble wrongly is right as Weft writes it; and random PTX, for a few seconds."""

from __future__ import annotations

import pytest

from assembler.known import KNOWN
from assembler.programs import generate
from assembler.run import Worker, inputs


@pytest.fixture(scope="module")
def worker() -> Worker:
    return Worker(raw=False)


@pytest.mark.parametrize("name", KNOWN)
def test_known_faults_are_avoided(worker: Worker, name: str) -> None:
    for seed in range(4):
        worker.card.give(inputs(seed))
        assert worker.different(KNOWN[name]) == []


def test_random_programs(worker: Worker) -> None:
    for batch in range(3):
        worker.card.give(inputs(batch))
        programs = [generate(batch * 100 + i) for i in range(100)]
        assert [programs[i].text("k") for i in worker.different(programs)] == []

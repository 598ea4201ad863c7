"""Tell two causes of an uninitialised read of shared memory apart: the writer has not run yet, or there is none.

The simulator chooses in which order partitions act. Where one reads what another has not written yet, that nothing was
written is only how it came out this time: the mistake is that nothing orders the two. So the reader stops, the others
go on as far as they can without it, and if one of them comes to a write that races with the read, that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .errors import RaceError, SimulationError, UninitializedError

TURNS = 1_000
"""How many turns the others get before it is given up."""


def is_race_with(error: SimulationError, read: SimulationError) -> bool:
    """Whether an error is a race of a write with a read of shared memory that found nothing."""
    return (
        isinstance(error, RaceError)
        and isinstance(read, UninitializedError)
        and read.space == "shared"
        and any(note.span == read.span for note in error.notes)
    )


def first_of(errors: Iterable[SimulationError]) -> list[SimulationError]:
    """The errors of a launch, races before the reads of unwritten memory that they explain."""
    ordered: list[SimulationError] = []
    for error in errors:
        at = next((i for i, other in enumerate(ordered) if is_race_with(error, other)), len(ordered))
        ordered.insert(at, error)
    return ordered


def instead_of(read: SimulationError, turn: Callable[[], bool]) -> SimulationError:
    """The race that a read of unwritten memory is, if others come to the write; else the error itself.

    `turn` lets the others act, and says whether any of them could.
    """
    for _ in range(TURNS):
        try:
            if not turn():
                break
        except SimulationError as error:
            if is_race_with(error, read):
                return error
    return read

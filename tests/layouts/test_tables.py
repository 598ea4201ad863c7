"""The published tables: what can be computed exactly is what was published."""

from __future__ import annotations

import json

import pytest

from weft.cli import main
from weft.layouts.tables import CONTIGUITY, REDUCTIONS, published_tables


def test_contiguity_is_as_published() -> None:
    table = published_tables()[0]
    for row, (key, (before, after)) in zip(table.rows, CONTIGUITY.items(), strict=True):
        ours = int(row[5])
        assert ours >= before
        if key != ("f8", 8, 2):  # the share of a thread is 64 bits
            assert ours == after


def test_reductions_move_no_duplicates() -> None:
    table = published_tables()[1]
    for row in table.rows:
        assert row[0] in REDUCTIONS
        assert int(row[4]) <= int(row[3])
    sliced = [row for row in table.rows if row[0].startswith("Sliced")]
    assert all(int(row[4]) < int(row[3]) for row in sliced)


def test_instructions_of_reductions() -> None:
    """Of a slice every thread of the dropped axis has a copy: kept, each takes part."""
    rows = {row[0]: (int(row[3]), int(row[4])) for row in published_tables()[1].rows}
    assert rows == {
        "Blocked": (403, 392),
        "MMA": (422, 300),
        "MMA Input": (422, 300),
        "Sliced<Blocked>": (50, 23),
        "Sliced<MMA>": (50, 16),
        "Sliced<MMA Input>": (50, 16),
    }


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "layouts", "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert [len(t["rows"]) for t in tables] == [10, 6, 10, 4]
    assert main(["bench", "layouts"]) == 0
    assert "Table 3" in capsys.readouterr().out

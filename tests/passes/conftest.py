"""`pytest tests/passes --update` writes what the passes yield into the case files; review the difference."""

import pytest

from weft.passes import pipeline_loads


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the results into the case files")


@pytest.fixture
def copies_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies by threads only: those of the engine have other waits (tests/hopper/test_bulk_copies.py)."""
    monkeypatch.setattr(pipeline_loads, "_copy_engine", lambda *_: None)

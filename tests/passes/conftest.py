"""`pytest tests/passes --update` writes what the passes yield into the case files; review the difference."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the results into the case files")

"""Everything below this folder needs a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.base import NoDevice
from weft.compiler import devices

HERE = Path(__file__).parent


def _missing() -> str | None:
    try:
        devices.current_device()
    except NoDevice as error:
        return str(error).splitlines()[0]
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and skip them where there is no GPU."""
    ours = [item for item in items if HERE in Path(item.path).parents]
    reason = _missing() if ours else None
    for item in ours:
        item.add_marker(pytest.mark.gpu)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"no GPU: {reason}"))

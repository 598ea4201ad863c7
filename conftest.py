"""Examples in docstrings know the names that a user's program begins with, wherever they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.testing import evaluate


@pytest.fixture(autouse=True, scope="session")
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    """What every doctest may use without importing it."""
    doctest_namespace.update(np=np, weft=weft, tl=tl, gl=gl, gluon=gluon, evaluate=evaluate)

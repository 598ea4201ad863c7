"""Examples in docstrings know the names that a user's program begins with, wherever they stand."""

from __future__ import annotations
import __future__

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
import weft.language as tl
import weft.sim  # all of it, or pytest makes the classes of a module twice when it is given that file alone
from weft import gluon
from weft.testing import evaluate

NAMES = {"np": np, "weft": weft, "tl": tl, "gl": gl, "gluon": gluon, "evaluate": evaluate}


@pytest.fixture(autouse=True)
def names_of_examples(request: pytest.FixtureRequest) -> None:
    """What every doctest may use without importing it, where its module has nothing else of that name."""
    example = getattr(request.node, "dtest", None)
    if example is not None:
        known = {name: v for name, v in example.globs.items() if not isinstance(v, __future__._Feature)}
        example.globs = {**NAMES, **known}  # a user's program may have no `from __future__ import annotations`

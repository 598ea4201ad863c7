"""The environment of a child process of a test: what it imports first, before what this process was told to import.

>>> environment("/tests", WEFT_TARGET="cpu")["PYTHONPATH"].split(os.pathsep)[0]
'/tests'
"""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"


def environment(*first: str | Path, **variables: str | Path) -> dict[str, str]:
    """This process's environment, with folders before its PYTHONPATH (the sources, if none is named) and variables.

    A PYTHONPATH of this process stays, since packages that the child needs may come from it; whole, since the child
    may run in another folder.
    """
    here = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = [os.path.abspath(path) for path in (*(first or (SOURCE,)), *here)]
    more = {name: str(value) for name, value in variables.items()}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}

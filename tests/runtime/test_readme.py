"""What the README shows, works."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_first_example(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text(blocks[0])
    names = runpy.run_path(str(script))
    np.testing.assert_array_equal(names["out"], names["x"] + names["y"])

"""What docs/reference/gluon.md shows runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "gluon.md"


def test_examples(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 9
    file = tmp_path / "shown.py"
    file.write_text("\n\n".join(blocks), encoding="utf-8")
    module = sys.modules["shown"] = ModuleType("shown")
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True), module.__dict__)

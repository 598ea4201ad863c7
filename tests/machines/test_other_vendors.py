"""A back end of a package that Weft knows nothing of joins by its entry point; vendors are named in their folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ACME = Path(__file__).with_name("acme")


def test_a_back_end_joins_by_its_entry_point(tmp_path: Path) -> None:
    shutil.copy(ACME / "acme_weft.py", tmp_path)
    installed = tmp_path / "acme_weft-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-weft\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[weft.backends]\nacme = acme_weft:BACKEND\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, ACME / "run.py"], capture_output=True, text=True, env=environment)
    assert done.stdout == "acme\n", done.stderr

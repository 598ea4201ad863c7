"""Kernels of notebooks that start without a word.

Jupyter's kernels warn that they talk to this machine by TCP without encryption, at each start: what builds the pages
would print warnings that are none of theirs.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["quiet_kernels"]


def quiet_kernels() -> None:
    """Have the kernels that this process starts report errors alone."""
    folder = tempfile.mkdtemp(prefix="weft-ipython-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    profile = Path(folder) / "profile_default"
    profile.mkdir()
    settings = "get_config().IPKernelApp.log_level = 'ERROR'\n"
    (profile / "ipython_kernel_config.py").write_text(settings, encoding="utf-8")
    os.environ["IPYTHONDIR"] = folder

"""What `import triton` finds first in a process that was started with the `sys.path` of one where Weft is `triton`.

PyTorch's compile workers are such processes, and those that `multiprocessing` spawns.  The module replaces itself.
"""

import importlib
import sys
from pathlib import Path

if __name__ == "triton":
    try:
        compat = importlib.import_module("weft.compat")
    except ModuleNotFoundError as error:
        if error.name != "weft":
            raise
        sys.path.append(str(Path(__file__).parents[4]))
        compat = importlib.import_module("weft.compat")
    compat.install(replace=True)
    importlib.import_module("triton")

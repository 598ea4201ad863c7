"""Weft under the name `triton`: scripts and libraries written for Triton run unchanged.

    import weft
    weft.compat.install()
    import triton                      # finds Weft
    import triton.language as tl

`python -m weft run script.py args...` does the same for a script.

>>> weft.compat.install()
>>> import triton
>>> triton.jit is weft.jit, triton.cdiv(10, 4)
(True, 3)
>>> weft.compat.uninstall()
"""

from .finder import install, installed, uninstall
from .script import module_exists, run_script

__all__ = ["install", "installed", "module_exists", "run_script", "uninstall"]

"""Test kernels in the Triton language, written for these tests, each with its data and its answer.

    with provider("weft"):                  # or "triton": the real one, where it is installed
        cases = load_cases("weft")          # name -> Case

The kernel files say `import triton` and `import triton.language as tl` as any user's would; `load_cases` decides what
they get, and can load them twice in one process, once for each.
"""

from .library import FAMILIES, load_cases, provider

__all__ = ["FAMILIES", "load_cases", "provider"]

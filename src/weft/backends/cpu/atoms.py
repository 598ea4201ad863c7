"""The operations that are neither elementwise nor a plain nest, one module each: importing them registers their
emission.
"""

from weft.backends.cpu import control, dot, indexed, scan

__all__ = ["control", "dot", "indexed", "scan"]

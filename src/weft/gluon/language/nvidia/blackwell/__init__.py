"""`gl.nvidia.blackwell`."""

__all__: list[str] = []

"""The GPUs that launches are for: the `Driver` of the back end whose target is asked for (see `compiler/backends.py`).

    from .device import devices
    devices.allocate(1 << 20, devices.current_device())

Nothing of the runtime knows whose GPUs they are.
"""

from weft.compiler import devices

from .compiling import asked

__all__ = ["devices"]

devices.chosen[:] = [asked]

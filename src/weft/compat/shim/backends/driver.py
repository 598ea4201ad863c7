"""triton.backends.driver."""

from weft.runtime.drivers import CPUDriver

__all__ = ["DriverBase", "GPUDriver"]


class DriverBase(CPUDriver):
    """The base of drivers."""


class GPUDriver(DriverBase):
    """The base of drivers of GPUs; no target that is here has one."""

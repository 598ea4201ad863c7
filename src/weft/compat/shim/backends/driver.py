"""triton.backends.driver."""

from weft.runtime.drivers import CPUDriver


class DriverBase(CPUDriver):
    """The base of drivers."""


class GPUDriver(DriverBase):
    """The base of drivers of GPUs; no target that is here has one."""

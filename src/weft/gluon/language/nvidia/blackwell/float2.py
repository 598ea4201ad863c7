"""`blackwell.float2`: two float32 in one instruction; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(
    globals(),
    "blackwell.float2",
    "cuda:100",
    "Float2Tensor fma full_like pack pack2 unpack unpack2",
    instead={"fma": "gl.fma takes two float32 one after the other"},
)

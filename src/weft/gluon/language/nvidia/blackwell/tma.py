"""`blackwell.tma`: bulk copies as on Hopper; gathers and scatters of rows are for Blackwell alone."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on
from ..hopper.tma import async_atomic_add as async_atomic_add
from ..hopper.tma import async_atomic_and as async_atomic_and
from ..hopper.tma import async_atomic_max as async_atomic_max
from ..hopper.tma import async_atomic_min as async_atomic_min
from ..hopper.tma import async_atomic_or as async_atomic_or
from ..hopper.tma import async_atomic_xor as async_atomic_xor
from ..hopper.tma import async_copy_global_to_shared as async_copy_global_to_shared
from ..hopper.tma import async_copy_global_to_shared_im2col as async_copy_global_to_shared_im2col
from ..hopper.tma import async_copy_shared_to_global as async_copy_shared_to_global
from ..hopper.tma import async_load as async_load
from ..hopper.tma import async_load_im2col as async_load_im2col
from ..hopper.tma import async_store as async_store
from ..hopper.tma import make_tensor_descriptor as make_tensor_descriptor
from ..hopper.tma import store_wait as store_wait
from ..hopper.tma import tensor_descriptor as tensor_descriptor
from ..hopper.tma import tensor_descriptor_type as tensor_descriptor_type

_missing = _only_on("blackwell.tma", "cuda:100")
async_gather = _missing("async_gather")
async_scatter = _missing("async_scatter")

_publish(globals())

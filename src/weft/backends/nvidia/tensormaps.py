"""Tensor maps that the host makes: 128 bytes in which the driver packs what the copy engine has to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from weft.base import LaunchError
from weft.targets.nvidia import ELEMENT_TYPES, SWIZZLES, TensorMap, map_of

from .driver import api
from .faults import check

KINDS = (
    *("UINT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16"),
    *("FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ"),
)
"""What the driver calls `ELEMENT_TYPES`."""


@lru_cache(maxsize=1024)
def encoded(tmap: TensorMap) -> bytes:
    """The map as the driver packs it."""
    cuda = api()
    kind = KINDS[ELEMENT_TYPES.index(tmap.dtype or f"u{8 * tmap.element_bytes}")]
    swizzle = ("NONE", "32B", "64B", "128B")[SWIZZLES.index(tmap.swizzle)]
    fill = cuda.CUtensorMapFloatOOBfill
    element = getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}")
    shape = [cuda.cuuint64_t(n) for n in tmap.shape]
    strides = [cuda.cuuint64_t(n) for n in tmap.strides or (16,)]  # of one dimension none is read
    box, steps = ([cuda.cuuint32_t(n) for n in numbers] for numbers in (tmap.box, tmap.steps))
    tensor = (element, len(tmap.shape), tmap.address, shape, strides)
    options = (
        steps,
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        fill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA if tmap.nan else fill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if tmap.corners:
        lower, upper = ([pair[i] for pair in tmap.corners] for i in range(2))
        encoding = check(cuda.cuTensorMapEncodeIm2col(*tensor, lower, upper, *box, *options), "a tensor map for images")
    else:
        encoding = check(cuda.cuTensorMapEncodeTiled(*tensor, box, *options), "a tensor map")
    return b"".join(int(word).to_bytes(8, "little") for word in encoding.opaque)


def map_maker(
    name: str, pointee: str, box: Sequence[int], swizzle: int, block: Sequence[int]
) -> Callable[[Any, int], tuple[Any, ...]]:
    """A function of a descriptor and its base's address: the map, shape and strides, as a kernel takes them."""
    boxes, blocks = tuple(box), tuple(block)

    def make(described: Any, address: int) -> tuple[Any, ...]:
        try:
            tensor_map = map_of(described, address, pointee, boxes, swizzle, blocks)
        except ValueError as found:
            raise LaunchError(f"`{name}` {found}", name) from found
        return (encoded(tensor_map), *described.shape, *described.strides)

    return make

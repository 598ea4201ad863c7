"""Tensor maps that the host makes: 128 bytes in which the driver packs what the copy engine has to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from weft.base import LaunchError
from weft.targets.nvidia import ELEMENT_TYPES, SWIZZLES, TensorMap, map_of, map_of_parts

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


def map_maker(name: str, maps: Sequence[Sequence[Any]]) -> Callable[[Any], tuple[Any, ...]]:
    """What makes the slots of an argument that is a descriptor, from what it was bound to.

    Each of `maps` is (elements, box, swizzle, block, number). A descriptor of Gluon's has one, with the number -1, and
    is bound to itself and the address of its base: it becomes the map, shape and strides. Any other is bound to its
    parts, which the maps follow.
    """
    if maps[0][-1] < 0:
        ((pointee, box, swizzle, block, _),) = maps
        return _instead(name, pointee, tuple(box), swizzle, tuple(block))
    return _besides(name, [(pointee, tuple(box), swizzle) for pointee, box, swizzle, *_ in maps])


def _besides(name: str, kinds: Sequence[tuple[str, tuple[int, ...], int]]) -> Callable[[Any], tuple[Any, ...]]:
    @lru_cache(maxsize=256)
    def make(parts: tuple[int, ...]) -> tuple[Any, ...]:
        try:
            return (*parts, *(encoded(map_of_parts(parts, *kind)) for kind in kinds))
        except ValueError as found:
            raise LaunchError(f"`{name}` {found}", name) from found

    return make


def _instead(
    name: str, pointee: str, box: tuple[int, ...], swizzle: int, block: tuple[int, ...]
) -> Callable[[Any], tuple[Any, ...]]:
    def make(bound: tuple[Any, int]) -> tuple[Any, ...]:
        described, address = bound
        try:
            tensor_map = map_of(described, address, pointee, box, swizzle, block)
        except ValueError as found:
            raise LaunchError(f"`{name}` {found}", name) from found
        return (encoded(tensor_map), *described.shape, *described.strides)

    return make

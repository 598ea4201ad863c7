"""Tensor maps that the host makes: 128 bytes in which the driver packs what the copy engine has to know."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from weft.base import LaunchError
from weft.targets.nvidia import ELEMENT_TYPES, SWIZZLES, TensorMap, map_of, map_of_parts

from .driver import api
from .faults import check

FLOATS = ("FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ")
KINDS = ("UINT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64", *FLOATS)
"""What the driver calls `ELEMENT_TYPES`, in the order of its numbers."""
L2_128_BYTES = 2
"""CU_TENSOR_MAP_L2_PROMOTION_L2_128B"""
BYTES, ALIGNMENT = 128, 64
"""Of a map."""


@lru_cache(maxsize=1024)
def encoded(tmap: TensorMap) -> bytes:
    """The map as the driver packs it."""
    kind = ELEMENT_TYPES.index(tmap.dtype or f"u{8 * tmap.element_bytes}")
    return _of_images(tmap, KINDS[kind]) if tmap.corners else _tiled(tmap, kind)


@lru_cache(maxsize=1)
def _encode_tiled() -> Any:
    """cuTensorMapEncodeTiled, called through ctypes: the bindings make an object of each number."""
    address, _ = check(api().cuGetProcAddress(b"cuTensorMapEncodeTiled", 12000, 0))
    pointers, options = [ctypes.c_void_p] * 5, [ctypes.c_int] * 4
    return ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, *pointers, *options
    )(int(address))  # fmt: skip


def _tiled(tmap: TensorMap, kind: int) -> bytes:
    rank = len(tmap.shape)
    memory = ctypes.create_string_buffer(BYTES + ALIGNMENT)
    at = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
    wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    sizes, strides = wide(*tmap.shape), wide(*(tmap.strides or (16,)))  # of one dimension none is read
    options = (0, SWIZZLES.index(tmap.swizzle), L2_128_BYTES, int(tmap.nan))
    status = _encode_tiled()(
        at, kind, rank, tmap.address, sizes, strides, narrow(*tmap.box), narrow(*tmap.steps), *options
    )
    if status:
        check((api().CUresult(status),), "a tensor map")
    return ctypes.string_at(at, BYTES)


def _of_images(tmap: TensorMap, kind: str) -> bytes:
    cuda = api()
    fill = cuda.CUtensorMapFloatOOBfill
    element = getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}")
    swizzle = ("NONE", "32B", "64B", "128B")[SWIZZLES.index(tmap.swizzle)]
    shape = [cuda.cuuint64_t(n) for n in tmap.shape]
    strides = [cuda.cuuint64_t(n) for n in tmap.strides]
    box, steps = ([cuda.cuuint32_t(n) for n in numbers] for numbers in (tmap.box, tmap.steps))
    lower, upper = ([pair[i] for pair in tmap.corners] for i in range(2))
    options = (
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        fill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA if tmap.nan else fill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    tensor = (element, len(tmap.shape), tmap.address, shape, strides)
    made = check(cuda.cuTensorMapEncodeIm2col(*tensor, lower, upper, *box, steps, *options), "a tensor map for images")
    return b"".join(int(word).to_bytes(8, "little") for word in made.opaque)


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

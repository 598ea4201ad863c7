"""Bulk copies and products of hopper.test_boxes and hopper.test_products that have no mistake, on the GPU."""

from hopper.test_boxes import test_every_rank, test_every_swizzle_and_type, test_several_boxes
from hopper.test_products import test_every_direction, test_every_type_and_swizzle, test_shapes

from .elsewhere import on_the_gpu_instead

on_gpu = on_the_gpu_instead("hopper.running")

__all__ = [
    "test_every_direction",
    "test_every_rank",
    "test_every_swizzle_and_type",
    "test_every_type_and_swizzle",
    "test_several_boxes",
    "test_shapes",
]

"""Gluon for programs of the host: `gluon.jit`, and descriptors of arrays. `weft.gluon` has them from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Never, overload

from weft.base import LaunchError, LayoutError
from weft.compiler import ASTSource
from weft.gluon.nvidia.limits import CORNERS
from weft.gluon.semantic import GluonSemantic
from weft.language.callable import constexpr_function as constexpr_function
from weft.language.constants import unwrap
from weft.layouts import NVMMASharedLayout

from . import descriptor
from .arrays import ArrayFacts, element_bytes
from .jit import JITFunction, decorated
from .launches import F, Fn

SHARED = ("num_warps", "num_ctas", "num_stages", "maxnreg")
"""Options that kernels like to have as parameters."""

GluonASTSource = ASTSource
"""A Gluon kernel to be compiled; `weft.ASTSource` knows one when it gets one."""


LEAST_ROW = 16
"""Bytes of the innermost dimension of a block, the least that the copy engine takes."""


@lru_cache(maxsize=256)
def _check_block(layout: NVMMASharedLayout, block: tuple[int, ...], element: str) -> None:
    """LaunchError where blocks of these elements cannot lie in a layout; looked at once for each kind of them."""
    size = element_bytes(element)
    if layout.rank != len(block):
        raise LaunchError(
            f"a tensor descriptor of {len(block)} dimensions needs a layout of as many: {layout!r} has {layout.rank}"
        )
    if block[-1] * size < LEAST_ROW:
        raise LaunchError(
            f"the block shape of a tensor descriptor must have {LEAST_ROW} bytes or more in the last dimension, "
            f"{list(block)} of {element} has {block[-1] * size}"
        )
    hint = f"gl.NVMMASharedLayout.get_default_for({list(block)}, dtype) fits"
    if layout.element_bitwidth != 8 * size and not layout.fp4_padded:
        raise LaunchError(
            f"the layout of a tensor descriptor is for elements of {layout.element_bitwidth} bits, the array holds "
            f"{element}: {layout!r}",
            hint=hint,
        )
    try:
        if prod(block[:-1]) == 1 < block[-1]:  # a row, of which copies that gather rows move several (Blackwell)
            layout.box(block)
        else:
            layout.to_linear(block)
    except LayoutError as error:
        raise LaunchError(f"a block of a descriptor cannot have this layout: {error.message}", hint=hint) from None


@dataclass
class TensorDescriptor(descriptor.TensorDescriptor):
    """A view of the array `base` of which kernels copy blocks to shared memory, where they lie in `layout`.

    1 to 5 dimensions, the last contiguous; address and other strides multiples of 16 bytes. What is outside of the
    array reads as 0, or with `padding="nan"` as NaN. With `round_f32_to_tf32` float32 is rounded to tf32 when loaded.
    """

    def __init__(
        self, base: Any, shape: Sequence[int], strides: Sequence[int], block_shape: Sequence[int],
        layout: NVMMASharedLayout, padding: str = "zero", round_f32_to_tf32: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(layout, NVMMASharedLayout):
            raise LaunchError(f"the layout of a tensor descriptor must be an NVMMASharedLayout, got {layout!r}")
        self.layout = layout
        self.round_f32_to_tf32 = round_f32_to_tf32
        super().__init__(base, list(shape), list(strides), list(block_shape), padding)

    @property
    def mode(self) -> str:
        """How a block is cut out of the array: "tiled", or of images "im2col"."""
        return "im2col" if self.images else "tiled"

    def _check_layout(self, element: str) -> None:
        _check_block(self.layout, tuple(self.block_shape), element)
        if self.round_f32_to_tf32 and element != "fp32":
            raise LaunchError(f"round_f32_to_tf32 is for arrays of float32, this one holds {element}")

    @staticmethod
    def from_tensor(  # type: ignore[override]
        tensor: Any, block_shape: Sequence[int], layout: NVMMASharedLayout, padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> TensorDescriptor:  # fmt: skip
        """Describe the whole of an array, with its own shape and strides."""
        shape, strides = descriptor.extent(tensor)
        return TensorDescriptor(tensor, shape, strides, block_shape, layout, padding, round_f32_to_tf32)

    def _signature(self, facts: ArrayFacts) -> str:
        """Its type in a signature: tensordesc<fp16[64, 64],NVMMASharedLayout(128, 16)>."""
        return f"{super()._signature(facts).removesuffix('>')},{self.layout!r}>"

    @property
    def known(self) -> str:
        """Nothing: what lies outside is the copy engine's affair."""
        return ""


@dataclass
class TensorDescriptorIm2Col(TensorDescriptor):
    """Images, of which kernels copy pixels and channels to shared memory: `block_shape` is [pixels, channels].

    The array has the dimensions of images, of one to three dimensions of pixels, and of channels, which are contiguous.
    Pixels follow each other along a row, then from row to row and from image to image, within a bounding box: that is
    the image, its first corner moved by `pixel_box_lower_corner` and its last one by `pixel_box_upper_corner`. Of each
    dimension every `element_strides`-th pixel is taken. Pixels outside of the image read as padding. So a convolution
    copies, for each place of its filter, the pixels that its outputs need there:

        # 3 x 3 filter, padded by 1: the box is that of the first place of the filter
        TensorDescriptorIm2Col(x, x.shape, x.stride(), [64, 32], layout, pixel_box_lower_corner=[-1, -1],
                               pixel_box_upper_corner=[-1, -1])
    """

    images = True

    def __init__(
        self, base: Any, shape: Sequence[int], strides: Sequence[int], block_shape: Sequence[int],
        layout: NVMMASharedLayout, padding: str = "zero", round_f32_to_tf32: bool = False,
        element_strides: Sequence[int] | None = None, pixel_box_lower_corner: Sequence[int] | None = None,
        pixel_box_upper_corner: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        self.element_strides = None if element_strides is None else list(element_strides)
        self.pixel_box_lower_corner = list(pixel_box_lower_corner or ())
        self.pixel_box_upper_corner = list(pixel_box_upper_corner or ())
        super().__init__(base, shape, strides, block_shape, layout, padding, round_f32_to_tf32)

    def _check_layout(self, element: str) -> None:
        rank = len(self.shape)
        if len(self.block_shape) != 2:
            raise LaunchError(f"a block of images is [pixels, channels], got {self.block_shape}")
        super()._check_layout(element)
        if rank not in CORNERS:
            raise LaunchError(f"images have 3 to 5 dimensions, those of pixels between two others, got {self.shape}")
        low, high = CORNERS[rank]
        for name in ("pixel_box_lower_corner", "pixel_box_upper_corner"):
            corner = getattr(self, name)
            if len(corner) != rank - 2 or not all(low <= c <= high for c in corner):
                raise LaunchError(
                    f"{name} of images of {rank} dimensions has {rank - 2} numbers of {low} to {high}, got {corner}"
                )
        steps = self.element_strides
        if steps is not None and (len(steps) != rank or not all(1 <= s <= 8 for s in steps) or steps[-1] != 1):
            raise LaunchError(f"element_strides are {rank} numbers of 1 to 8, of channels 1, got {steps}")

    @staticmethod
    def from_tensor(  # type: ignore[override]
        tensor: Any, block_shape: Sequence[int], layout: NVMMASharedLayout, padding: str = "zero",
        round_f32_to_tf32: bool = False, element_strides: Sequence[int] | None = None,
        pixel_box_lower_corner: Sequence[int] | None = None, pixel_box_upper_corner: Sequence[int] | None = None,
    ) -> TensorDescriptorIm2Col:  # fmt: skip
        """Describe the whole of an array, with its own shape and strides."""
        shape, strides = descriptor.extent(tensor)
        return TensorDescriptorIm2Col(
            tensor, shape, strides, block_shape, layout, padding, round_f32_to_tf32, element_strides,
            pixel_box_lower_corner, pixel_box_upper_corner,
        )  # fmt: skip

    def _signature(self, facts: ArrayFacts) -> str:
        tiled = super()._signature(facts)
        return f"{tiled.replace('tensordesc', 'tensordesc_im2col', 1).removesuffix('>')},{len(self.shape)}>"

    @property
    def known(self) -> str:
        """How many dimensions there are: a kernel is compiled for that."""
        return f"i{len(self.shape)}"


class GluonJITFunction(JITFunction[F]):
    """A Gluon kernel: traced to layout IR, launched for targets that have layouts."""

    semantic = GluonSemantic

    def is_gluon(self) -> bool:
        return True

    def _bind(self, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound, options = super()._bind(*args, **kwargs)
        return bound, self._with_parameters(bound, options)

    def _compile_for(
        self, args: tuple[Any, ...], options: Mapping[str, Any], warmup: bool, specialization: Any = None, **more: Any
    ) -> Any:
        return super()._compile_for(args, self._with_parameters(args, options), warmup, specialization, **more)

    def _with_parameters(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """The options; a parameter that is called like one says it too, as in Triton: `num_warps: gl.constexpr`."""
        shared = [(p.name, a) for p, a in zip(self.params, args, strict=True) if p.name in SHARED and p.is_constexpr]
        return {**{name: unwrap(value) for name, value in shared}, **options}


@overload
def jit(fn: JITFunction[Fn]) -> GluonJITFunction[Fn]: ...
@overload
def jit(fn: Fn) -> GluonJITFunction[Fn]: ...
@overload
def jit(
    fn: None = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Mapping[str, Any]] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Fn], GluonJITFunction[Fn]]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Mapping[str, Any]] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
    **unknown: Never,
) -> Any:
    """Decorator: make a function a Gluon kernel, or one that Gluon kernels call. Options are those of `weft.jit`.

    >>> from weft.gluon import language as gl
    >>> from weft import gluon
    >>> @gluon.jit                                                                          # doctest: +SKIP
    ... def copy(x, y, layout: gl.constexpr):
    ...     i = gl.arange(0, 1024, layout=layout)
    ...     gl.store(y + i, gl.load(x + i))
    """

    return decorated(
        GluonJITFunction, fn, version=version, repr=repr, launch_metadata=launch_metadata,
        do_not_specialize=do_not_specialize, do_not_specialize_on_alignment=do_not_specialize_on_alignment,
        debug=debug, noinline=noinline, **unknown,
    )  # fmt: skip

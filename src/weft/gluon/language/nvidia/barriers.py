"""Barriers in shared memory (mbarrier): what the generations of NVIDIA's GPUs that have them share."""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.base import Unsupported, hinted
from weft.ir.nvidia import ttng
from weft.language import dtypes as dt
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin

from ...memory import shared_memory_descriptor
from ...operands import known_number
from ...semantic import GluonSemantic
from ...types import blocks_of
from ..layouts import MBarrierLayout


def barrier_handle(name: str, value: Any) -> Any:
    """The handle of an mbarrier."""
    is_word = isinstance(value, shared_memory_descriptor) and value.dtype == dt.int64 and len(value.shape) == 1
    if not is_word or value.shape[0] != blocks_of(value.layout, value.shape):
        shown = f"{value}" if isinstance(value, shared_memory_descriptor) else repr(value)
        raise hinted(
            TypeError(f"{name} needs an mbarrier, one int64 of shared memory, got {shown}"),
            "bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout()); of several, bars.index(i)",
        )
    return value.handle


def _memory(value: Any) -> Any:
    if not isinstance(value, shared_memory_descriptor):
        raise TypeError(f"wait: deps is shared memory that is in use until then, got {value}")
    return value


def _count(name: str, parameter: str, value: Any) -> Any:
    return ir.i32_attr(known_number(f"{name}: {parameter}", value, 1))


def _pred(pred: Any, semantic: GluonSemantic) -> Any:
    value = semantic.to_tensor(pred)
    if not value.type.is_bool():
        raise TypeError(f"the predicate must be a scalar boolean, got {value}")
    return value.handle


@builtin
def allocate_mbarrier(batch: Any = None, two_ctas: Any = False, _semantic: GluonSemantic = GIVEN) -> Any:
    """Memory for an mbarrier, or for `batch` of them (`bars.index(i)`); in a cluster each block has its own."""
    if unwrap(two_ctas):
        raise Unsupported("an mbarrier of two blocks", str(_semantic.target), hint="they are for Blackwell's products")
    several = unwrap(batch)
    shape = [1] if several is None else [known_number("allocate_mbarrier: batch", several, 1), 1]
    return _semantic.allocate_shared(dt.int64, shape, MBarrierLayout(), None)


@builtin
def init(mbarrier: Any, count: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """Make an mbarrier whose phases are over when `count` have arrived (and all bytes that were expected)."""
    properties = {"count": _count("init", "count", count)}
    _semantic.builder.create(ttng.InitBarrierOp, (barrier_handle("init", mbarrier),), (), properties)


@builtin
def invalidate(mbarrier: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """The memory is no mbarrier any more, and may be used for something else."""
    _semantic.builder.create(ttng.InvalBarrierOp, (barrier_handle("invalidate", mbarrier),))


@builtin
def wait(mbarrier: Any, phase: Any, pred: Any = True, deps: Any = (), _semantic: GluonSemantic = GIVEN) -> None:
    """Wait until the phase of this parity (0 or 1) is over, where `pred` holds.

    `deps` is shared memory that is in use until then.
    """
    parity = _semantic.to_tensor(phase)
    if not parity.type.is_int():
        raise TypeError(f"wait: the phase must be a scalar integer, 0 or 1, got {parity}")
    parity = _semantic.cast(parity, dt.int32)
    memory = [_memory(value).handle for value in listed(deps)]
    operands = [barrier_handle("wait", mbarrier), parity.handle, _pred(pred, _semantic), *memory]
    properties = {"operandSegmentSizes": ir.segments(1, 1, 1, len(memory))}
    _semantic.builder.create(ttng.WaitBarrierOp, operands, (), properties)


def _routed(name: str, from_cta: Any, semantic: GluonSemantic) -> dict[str, Any]:
    """The properties that say which block arrives at which mbarrier; none where each arrives at its own."""
    mask, all_bits = unwrap(from_cta), int(unwrap(semantic.num_ctas())) - 1
    if mask is None or mask == all_bits:
        return {}
    if type(mask) is not int or not 0 <= mask < all_bits:
        raise ValueError(
            f"{name}: from_cta must be a number known when compiling from 0 to {all_bits}, of blocks of the cluster, "
            f"got {mask}"
        )
    return {"fromCTA": ir.i32_attr(mask)}


@builtin
def expect(
    mbarrier: Any, bytes: Any = None, pred: Any = True, *, bytes_per_cta: Any = None, from_cta: Any = None,
    _semantic: GluonSemantic = GIVEN,
) -> None:  # fmt: skip
    """Arrive, and let `bytes` (in Triton 3.7 `bytes_per_cta`) more be copied before the phase is over, where `pred`.

    `from_cta` is a mask of bits of a block's number in the cluster: the mbarrier of block c gets its arrival from block
    `c & from_cta`. Without it each block arrives at its own; 0 is from the first block to all.
    """
    size = bytes if unwrap(bytes_per_cta) is None else bytes_per_cta
    properties = {"size": _count("expect", "bytes", size), **_routed("expect", from_cta, _semantic)}
    operands = (barrier_handle("expect", mbarrier), _pred(pred, _semantic))
    _semantic.builder.create(ttng.BarrierExpectOp, operands, (), properties)


@builtin
def arrive(
    mbarrier: Any, count: Any = 1, pred: Any = True, *, from_cta: Any = None, each_warp: Any = False,
    every_block: Any = False, _semantic: GluonSemantic = GIVEN,
) -> None:  # fmt: skip
    """Arrive `count` times, where `pred` holds and all warps have come so far; `from_cta` is as in `expect`.

    With `each_warp`, every warp arrives once for itself, and waits for no other: the mbarrier is made for as many more.
    With `every_block` too, it arrives at this mbarrier of every block of the cluster, each of which waits for that
    before it ends. Weft's, not Triton's.
    """
    alone, everywhere = unwrap(each_warp), unwrap(every_block)
    for name, value in (("each_warp", alone), ("every_block", everywhere)):
        if not isinstance(value, bool):
            raise TypeError(f"arrive: {name} must be True or False when compiling, got {value}")
    if everywhere and not alone:
        raise hinted(ValueError("arrive: every_block goes with each_warp"), "mbarrier.arrive(m, each_warp=True, ...)")
    if alone and (unwrap(count) != 1 or unwrap(from_cta) is not None):
        raise hinted(ValueError("arrive: each_warp goes with no count and no from_cta"), "each warp arrives once")
    properties = {"count": _count("arrive", "count", count), **_routed("arrive", from_cta, _semantic)}
    operands = (barrier_handle("arrive", mbarrier), _pred(pred, _semantic))
    op = _semantic.builder.create(ttng.ArriveBarrierOp, operands, (), properties)
    if alone:
        op.attributes[ttng.EACH_WARP] = ir.unit_attr()
    if everywhere:
        op.attributes[ttng.EVERY_BLOCK] = ir.unit_attr()


def listed(values: Any) -> list[Any]:
    """A list, a tuple, or one value, as a list."""
    values = unwrap(values)
    if hasattr(values, "handle"):
        return [values]
    values = getattr(values, "values", values)
    if not hasattr(values, "__iter__"):
        raise TypeError(f"expected a list, got {values}")
    return list(values)

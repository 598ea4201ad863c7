"""Warp specialisation: several functions side by side, each on warps of its own.

    ttg.warp_specialize(%captures) default { ... } partition0(%captures) num_warps(4) { ... }

The first function goes on in the warps of the kernel and may return values. The others get what they are called with as
captures, since they see nothing else, and run on `worker_num_warps` warps each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Block, Region

from weft.base import hinted
from weft.ir.gpu import ttg
from weft.language.constants import constexpr
from weft.language.protocol import base_value
from weft.language.tensors import tensor
from weft.language.tuples import tuple as _tuple

from .shared import SharedMemory


def _i32s(values: Sequence[int]) -> DenseArrayBase[Any]:
    return DenseArrayBase.from_list(i32, values)


class Partitions(SharedMemory):
    """`warp_specialize`, and what depends on the partition."""

    _inside: bool = False

    def num_warps(self) -> constexpr:
        """The warps that run what is being traced."""
        return constexpr(self.warps)

    def num_ctas(self) -> constexpr:
        """The blocks of a cluster."""
        return constexpr(self.options.num_ctas)

    @contextmanager
    def _partition(self, block: Block, warps: int) -> Iterator[None]:
        """Trace into a block that so many warps run."""
        before, self.warps, self._inside = self.warps, warps, True
        try:
            with self.builder.inside(block):
                yield
        finally:
            self.warps, self._inside = before, False

    def warp_specialize(
        self, functions_and_args: Sequence[Any], worker_num_warps: Sequence[int],
        worker_num_regs: Sequence[int] | None, generator: Any,
    ) -> Any:  # fmt: skip
        """Run functions side by side; gives what the first one returns. Without registers, all have the kernel's."""
        calls = [_call(pair) for pair in functions_and_args]
        self._check_partitions(calls, worker_num_warps, worker_num_regs)
        (default, default_args), workers = calls[0], calls[1:]
        body = Block()
        with self._partition(body, self.warps):
            returned = generator.call_JitFunction(default, default_args, kwargs={})
            results: list[Any] = []
            for value in _values(returned):
                value._flatten_ir(results)
            self.builder.create(ttg.WarpYieldOp, results)
        captures: list[Any] = []
        for _, args in workers:
            for value in args:
                value._flatten_ir(captures)
        holder = Block()
        properties = {"partitionNumWarps": _i32s(worker_num_warps)}
        if worker_num_regs is not None:
            properties["requestedRegisters"] = _i32s(worker_num_regs)
        op = self.builder.create(
            ttg.WarpSpecializeOp,
            captures,
            [r.type for r in results],
            properties,
            regions=[Region(body), Region(holder)],
        )
        self._trace_workers(holder, workers, worker_num_warps, [c.type for c in captures], generator)
        return _again(returned, list(op.results))

    def _check_partitions(self, calls: Sequence[Any], warps: Sequence[int], registers: Sequence[int] | None) -> None:
        if self._inside:
            raise ValueError("warp_specialize inside of a partition: it cannot be nested")
        if not calls:
            raise ValueError("warp_specialize needs a function for the default partition")
        workers = len(calls) - 1
        for counted, values in (("warp counts", warps), ("register counts", registers)):
            if values is not None and len(values) != workers:
                raise ValueError(f"warp_specialize got {workers} worker partitions but {len(values)} {counted}")
        for _, args in calls[1:]:
            for value in args:
                self._check_capture(value)
        for count in warps:
            if type(count) is not int or count < 1 or count & (count - 1):
                raise ValueError(f"a partition runs on a power of two of warps, got {count}")

    def _check_capture(self, value: Any) -> None:
        """A worker has other threads, so that it can be given no tile."""
        if isinstance(value, _tuple):
            for item in value.values:
                self._check_capture(item)
        elif isinstance(value, tensor) and value.type.is_block():
            raise hinted(
                ValueError(f"a worker partition cannot be given a tensor, got {value}: it runs on other threads"),
                "pass it through shared memory, or give it to the first function",
            )

    def _trace_workers(
        self, holder: Block, workers: Sequence[Any], warps: Sequence[int], types: Sequence[Any], generator: Any
    ) -> None:
        blocks = [Block(arg_types=types) for _ in workers]
        at = 0
        for (function, args), block, count in zip(workers, blocks, warps, strict=True):
            arguments = []
            cursor = at
            for value in args:
                again, cursor = value.type._unflatten_ir(list(block.args), cursor)
                arguments.append(again)
            at = cursor
            with self._partition(block, count):
                returned = generator.call_JitFunction(function, arguments, kwargs={})
                if returned is not None:
                    raise hinted(
                        ValueError(f"a worker partition cannot return a value, {function.__name__} does"),
                        "only the first function of warp_specialize can; pass results through shared memory",
                    )
                self.builder.create(ttg.WarpReturnOp)
        with self.builder.inside(holder):
            self.builder.create(ttg.WarpSpecializePartitionsOp, regions=[Region(block) for block in blocks])


def _call(pair: Any) -> tuple[Any, list[Any]]:
    """A function and its arguments."""
    items = pair.values if isinstance(pair, _tuple) else pair
    if isinstance(items, constexpr):
        items = items.value
    if not isinstance(items, (tuple, list)) or len(items) != 2:
        raise ValueError(f"warp_specialize takes pairs (function, arguments), got {items!r}")
    function, args = items[0], items[1]
    function = function.value if isinstance(function, constexpr) else function
    args = args.value if isinstance(args, constexpr) else args
    if not isinstance(args, (tuple, list, _tuple)):
        raise TypeError(f"function arguments must be a tuple of arguments, but got {type(args).__name__}")
    values = args.values if isinstance(args, _tuple) else args
    return function, [v if isinstance(v, base_value) else constexpr(v) for v in values]


def _values(returned: Any) -> list[Any]:
    """What the default partition returns, as a list."""
    if returned is None:
        return []
    return list(returned.values) if isinstance(returned, _tuple) else [returned]


def _again(returned: Any, handles: list[Any]) -> Any:
    """The same values over the results of the operation."""
    if returned is None:
        return None
    values, cursor = [], 0
    for value in _values(returned):
        again, cursor = value.type._unflatten_ir(handles, cursor)
        values.append(again)
    return _tuple(values) if isinstance(returned, _tuple) else values[0]

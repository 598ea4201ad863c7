"""Wait until memory holds a value: the first lane polls, and tells the rest of its warp by a shuffle.

    tt.atomic_poll acquire, gpu, %p, %v
becomes
    if first warp: { while (ld.relaxed.gpu (%p) != %v); fence.acquire.gpu }
    barrier

The other warps wait at the barrier, so no shared memory is needed if the only news is that the wait is over. A wait
that may end for two reasons has a result, which goes through shared memory; in a cluster, its first block polls.
"""

from __future__ import annotations

from contextlib import nullcontext

from xdsl.ir import Operation

from weft.ir import int_value
from weft.ir.lane import Block, Value
from weft.layouts import LinearLayout

from .atomics import ORDERS, SCOPES, everywhere, to_all
from .context import Context, elem_of, lowering
from .telling import barrier_between

FENCES = {"cta": "acquire.block", "gpu": "acquire.device", "sys": "acquire.system"}


@lowering("tt.atomic_poll")
def _poll(c: Context, op: Operation) -> None:
    pointer, expected = c[op.operands[0]], c[op.operands[1]]
    timeout = c[op.operands[2]] if len(op.operands) > 2 else None
    scope = SCOPES[int_value(op.properties["scope"])]
    all_blocks = {"warp": c.program.warps - 1, "block": c.program.blocks - 1 if timeout is not None else 0}
    waits = c.all_of([c.is_zero(c.index(dim, mask)) for dim, mask in all_blocks.items() if mask])
    polls, others = Block(), Block()
    with c.inside(polls) if waits is not None else nullcontext():
        reached = _loop(c, pointer, expected, timeout, elem_of(op.operands[1].type), scope)
        if ORDERS[int_value(op.properties["sem"])] == "acquire":
            c.build.add("fence", (), (), {"kind": FENCES[scope]})
        if waits is not None:
            c.build.add("yield", [reached])
    if waits is not None:
        with c.inside(others):
            c.build.add("yield", [c.number(0, "i1")])
        reached = c.build.add("if", [waits], [("i1", 1)], {"of_warp": True}, [polls, others]).result
    if timeout is None:
        barrier_between(c, "global", "a wait for a value in memory", "what follows it")
        c[op.results[0]] = c.number(1, "i1")
    else:
        c[op.results[0]] = to_all(c, reached, LinearLayout.from_bases(everywhere(c), {"dim0": 1}))


def _loop(c: Context, pointer: Value, expected: Value, timeout: Value | None, elem: str, scope: str) -> Value:
    """The loop of one warp: whether it was found."""
    begin = _clock(c) if timeout is not None else None
    with c.inside(Block()) as before:
        first = c.is_zero(c.index("lane", c.program.lanes - 1))
        load = {"kind": "load", "space": "global", "order": "relaxed", "scope": scope, "masked": True}
        old = c.build.add("atomic", [pointer, expected, first], [(elem, 1)], load).result
        equal = c.build.op("arith.cmpi", [c.build.shuffle(old, c.number(0)), expected], "i1", predicate=0)
        waiting = c.negated(equal)
        if begin is not None and timeout is not None:
            passed = c.build.op("arith.subi", [_clock(c), begin], "i64")
            early = c.build.op("arith.cmpi", [passed, timeout], "i1", predicate=6)  # unsigned less than
            waiting = c.build.op("arith.andi", [waiting, early], "i1")
        c.build.add("condition", [waiting, equal])
    with c.inside(Block((Value("i1", 1),))) as after:
        c.build.add("yield")
    return c.build.add("while", (), [("i1", 1)], {}, [before, after]).result


def _clock(c: Context) -> Value:
    return c.build.add("clock", (), [("i64", 1)]).result

"""Which anchors share a nest: those over one space whose accesses and results do not depend on each other.

    tl.store(a + i, x + y)              one nest: both over i, and x + y is computed once
    tl.store(b + i, (x + y) * z)

    total = tl.sum(x, 0)                two nests: the second needs what the first gives
    tl.store(b + i, x / total)

The reasons below are told in remarks (`NotFused`), so each is said in the words of a kernel's author.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.backends.cpu.aliases import Aliases, offset_key, root_of
from weft.backends.cpu.coords import Coords, row_major
from weft.backends.cpu.nest import Root, in_order
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import Analysis
from weft.backends.cpu.reduce import ReduceRoot
from weft.backends.cpu.roots import AssertRoot, AtomicRoot, StoreRoot
from weft.base.remarks import NotFused

MOST_TOGETHER = 32  # roots of one nest: LLVM compares every two accesses of memory in a loop
MOST_STORES = 8  # of these: every two are compared, and more of them share little


def apart(root: Root, roots: Sequence[Root], pending: Sequence[Op], aliases: Aliases, analysis: Analysis) -> str:
    """Why an anchor is not for a nest of `roots`; empty if it is. `pending` are the loads that are still to come."""
    first, env = roots[0], analysis.env
    if root.shape != first.shape:
        return "it has another shape"
    if len(roots) >= MOST_TOGETHER:
        return f"these do {MOST_TOGETHER} things already"
    axes = {r.axis for r in roots if isinstance(r, ReduceRoot)}
    if isinstance(root, ReduceRoot) and axes and root.axis not in axes:
        return "it reduces another dimension"
    if any(isinstance(r, (AtomicRoot, AssertRoot)) for r in (*roots, root)):
        return "atomics and assertions have loops of their own"
    both = (*roots, root)
    if any(isinstance(r, StoreRoot) for r in both) and any(_has_loop(r, analysis) for r in both):
        return "a loop that is in one of them loads from other places"
    reduces = isinstance(root, ReduceRoot) or any(isinstance(r, ReduceRoot) for r in roots)
    if reduces and any(in_order(r, analysis) for r in (*roots, root)):
        return "one may store twice to one address, which keeps its order"
    produced = {v for r in roots if r.op is not None for v in r.op.results}
    walked = analysis.walk(root.inputs())
    if _reads(walked, produced, env):
        return "it needs the results of these"
    stores = [r.op for r in roots if isinstance(r, StoreRoot)]
    loads = [v.op for v, _ in walked if v not in env and v.op is not None and v.op.name == "tt.load"]
    for store in stores:
        for load in loads:
            if load.index > store.index and aliases.may_meet(load.args[0], store.args[0], False):
                same = _is_same(load.args[0], store.args[0], analysis)
                return NotFused.LOADED_AGAIN if same else "it may load what these store"
    if isinstance(root, StoreRoot):
        if len(stores) >= MOST_STORES:
            return f"{MOST_STORES} stores are done together already"
        for store in stores:
            is_same = same_places(store.args[0], root.op.args[0], analysis)
            if aliases.may_meet(store.args[0], root.op.args[0], is_same):
                return "it may store where these do"
        for load in pending:  # what it may overwrite must be there before the nest
            after = [s for s in stores if s.index < load.index]
            if load.result in env or not (after or produced):
                continue
            waits = any(aliases.may_meet(load.args[0], s.args[0], False) for s in after)
            waits = waits or _reads(analysis.walk([(load.result, row_major(load.result.shape))]), produced, env)
            if waits and aliases.may_meet(load.args[0], root.op.args[0], False):
                return "it may store what is still to be loaded"
    return ""


def _has_loop(root: Root, analysis: Analysis) -> bool:
    """Whether a fused loop is evaluated for a root."""
    return any(v.op is not None and v.op.fused and v not in analysis.env for v, _ in analysis.walk(root.inputs()))


def _reads(walked: Iterable[tuple[Value, Coords]], produced: set[Value], env: Mapping[Value, Any]) -> bool:
    """Whether something visited is, or is made of, what the open nest is about to give."""
    for value, _ in walked:
        if value in produced:
            return True
        if value.op is not None and value not in env and any(a in produced for a in value.op.args):
            return True
    return False


def same_places(a: Value, b: Value, analysis: Analysis) -> bool:
    """Whether two tiles of pointers are the same offset from their bases at each point, and no two points share one."""
    alike = a.shape == b.shape and offset_key(a) == offset_key(b)
    return alike and analysis.injective(a, row_major(a.shape))


def _is_same(a: Value, b: Value, analysis: Analysis) -> bool:
    """Whether two tiles of pointers are the same addresses."""
    return a is b or (root_of(a) is not None and root_of(a) is root_of(b) and same_places(a, b, analysis))

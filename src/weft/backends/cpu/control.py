"""Control flow: loops, branches, and the basic blocks that Triton's early returns make.

Scalars carried by a loop are phi nodes; tiles carried by a loop have a buffer for the whole of it, updated in place
where every new element depends on the old one at the same place. What a region materialises is forgotten when it ends,
because it may not have run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import row_major
from weft.backends.cpu.dot import prepare_products
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.nest import EFFECTS
from weft.backends.cpu.program import Block, Op, Value
from weft.backends.cpu.schedule import Loop, Scheduler, anchor
from weft.backends.llvm.values import I64, Value as Reg, const


def nested_ops(op: Op) -> Iterable[Op]:
    """Every operation in an operation's regions, in order; without recursion, as nests may be deep."""
    stack = [iter(block.ops) for region in reversed(op.regions) for block in reversed(region)]
    while stack:
        for inner in stack[-1]:
            yield inner
            if inner.regions:
                stack += [iter(block.ops) for region in reversed(inner.regions) for block in reversed(region)]
                break
        else:
            stack.pop()


def _prepare_region(s: Scheduler, op: Op) -> None:
    """Before a region: nothing pending that it could overwrite, nothing expensive that it would compute again."""
    s.flush()
    inside = list(nested_ops(op))
    inner_ids = {id(r) for inner in inside for r in inner.results}
    inner_ids |= {id(a) for region in op.regions for block in region for a in block.args}
    inner_ids |= {id(a) for inner in inside for region in inner.regions for block in region for a in block.args}
    s.prepare(a for inner in inside for a in inner.args if id(a) not in inner_ids)
    s.settle_loads([i for i in inside if i.name in EFFECTS], set())


class _Saved:
    """What is known before a region and again after it."""

    def __init__(self, s: Scheduler) -> None:
        self.s, self.env, self.loads = s, dict(s.env), list(s.pending_loads)

    def restore(self) -> None:
        self.s.env.clear()
        self.s.env.update(self.env)
        self.s.pending_loads = [op for op in self.loads if op.result not in self.env]


def _carried_buffer(s: Scheduler, init: Value, last: int, weights: tuple[tuple[int, ...], ...] | None = None) -> Buffer:
    buffer = s.arena.allocate(init, s.position, last, weights=weights)
    s.write_into(init, buffer)
    return buffer


def _assign(s: Scheduler, end: Op, pairs: list[tuple[Value, Buffer]]) -> None:
    """Write each value that a block ends with into its buffer as if all at once: some values read the buffers' old
    contents.
    """
    s.ending = end
    todo = [(v, b) for v, b in pairs if s.env.get(v) is not b and (v.op is None or v.op.name != "ub.poison")]
    targets = {id(b) for _, b in todo}
    ready: list[tuple[Value, Buffer]] = []
    for value, buffer in todo:
        reads_elsewhere = False
        analysis = s.analysis()
        start = row_major(value.shape)
        for v, coords in analysis.walk([(value, start)]):
            held_in = s.env.get(v)
            if isinstance(held_in, Buffer) and id(held_in) in targets and (held_in is not buffer or coords != start):
                reads_elsewhere = True
        if reads_elsewhere:
            s.flush()
            copy = s.arena.allocate(value, s.position, s.position)
            s.write_into(value, copy)
            s.flush()
            s.env[value] = copy
        ready.append((value, buffer))
    for value, buffer in ready:
        s.write_into(value, buffer)
    s.flush()
    s.ending = None


def _region(s: Scheduler, block: Block, scalars: list[int], buffers: dict[int, Buffer]) -> list[Reg]:
    """Emit a region's block, which fills the buffers; gives the scalars, by their places, that it ends with."""
    with s.f.divisible():
        s.block(block)
        end = block.ops[-1]
        s.position = end.index
        result = [s.scalar(end.args[k]) for k in scalars]
        _assign(s, end, [(end.args[k], b) for k, b in buffers.items()])
    return result


def _know(
    s: Scheduler, values: Sequence[Value], scalars: list[int], regs: Sequence[Reg], buffers: dict[int, Buffer]
) -> None:
    """Values are in registers and in buffers from here on."""
    s.env.update((values[k], reg) for k, reg in zip(scalars, regs, strict=True))
    s.env.update((values[k], buffer) for k, buffer in buffers.items())


def _known(value: Reg) -> int | None:
    """What an integer is, if it is a constant."""
    return int(value.name) if value.name.removeprefix("-").isdigit() else None


@anchor("scf.for")
def _for(s: Scheduler, op: Op) -> None:
    _prepare_region(s, op)
    lower, upper, step = (s.scalar(a) for a in op.args[:3])
    block = op.regions[0][0]
    iv, carried = block.args[0], block.args[1:]
    inits = op.args[3:]
    buffers: dict[int, Buffer] = {}
    scalars = [k for k, v in enumerate(carried) if not v.is_tile]
    for k, v in enumerate(carried):
        if v.is_tile:
            how = ", as its loads lie in memory and not row by row" if op in s.orders else ""
            s.tell_kept(op.results[k], f"the loop carries it{how}")
            buffers[k] = _carried_buffer(s, inits[k], max(op.last, s.last_use(op.results[k])), s.orders.get(op))
    s.flush()
    prepare_products(s, op)
    start = [s.scalar(inits[k]) for k in scalars]
    saved = _Saved(s)
    f = s.f
    if _known(step) is None:  # a step that is not positive would go on for ever
        upper = f.select(f.icmp("sgt", step, const(step.type, 0)), upper, lower)
    end, by = _known(upper), _known(step)
    may_wrap = end is None or by is None or end + by > 2 ** (step.type.bits - 1) - 1
    safe_step = f.intrinsic("smax", step.type, [step, const(step.type, 1)])
    trips = f.cast("sext", f.bin("sdiv", f.sub(upper, lower), safe_step), I64)
    s.trip_counts.append(trips)

    def body(i: Reg, values: list[Reg]) -> Sequence[Reg]:
        s.env[iv] = i
        becomes = list(zip(carried, block.ops[-1].args, strict=True))
        s.loops.append(Loop(block, iv, i, upper, step, f.add(i, step), becomes))
        _know(s, carried, scalars, values, buffers)
        result = _region(s, block, scalars, buffers)
        s.context.polling.end_iteration(f, op)
        s.loops.pop()
        return result

    finals = f.loop_carrying(lower, upper, step, start, body, may_wrap=may_wrap)
    s.trip_counts.pop()
    s.position = op.last
    saved.restore()
    _know(s, op.results, scalars, finals, buffers)


@anchor("scf.if")
def _if(s: Scheduler, op: Op) -> None:
    _prepare_region(s, op)
    cond = s.scalar(op.args[0])
    buffers = {
        k: s.arena.allocate(r, op.index, max(op.last, s.last_use(r))) for k, r in enumerate(op.results) if r.is_tile
    }
    for k in buffers:
        s.tell_kept(op.results[k], "either side of the branch gives it")
    scalars = [k for k, r in enumerate(op.results) if not r.is_tile]
    saved = _Saved(s)

    def side(region: list[Block]) -> Sequence[Reg]:
        block = region[0]
        result = _region(s, block, scalars, buffers)
        s.context.polling.end_side(s.f, block)
        saved.restore()
        return result

    other = op.regions[1] if len(op.regions) > 1 and op.regions[1] else None
    finals = s.f.if_else(cond, lambda: side(op.regions[0]), (lambda: side(other)) if other else None)
    s.position = op.last
    _know(s, op.results, scalars, finals, buffers)


def _loads_scalars(op: Op) -> bool:
    """Whether anything inside of an operation loads a scalar."""
    inside = [o for region in op.regions for block in region for o in block.ops]
    return any((o.name == "tt.load" and not o.result.is_tile) or _loads_scalars(o) for o in inside)


@anchor("scf.while")
def _while(s: Scheduler, op: Op) -> None:
    _prepare_region(s, op)
    f = s.f
    before, after = op.regions[0][0], op.regions[1][0]
    last = max([op.last, *(s.last_use(r) for r in op.results)])
    buffers = {k: _carried_buffer(s, init, last) for k, init in enumerate(op.args) if init.is_tile}
    for result in (r for r in op.results if r.is_tile):
        s.tell_kept(result, "the loop carries it")
    s.flush()
    scalars = [k for k, init in enumerate(op.args) if not init.is_tile]
    starts = [s.scalar(op.args[k]) for k in scalars]
    head, inside, done = f.new_label("while"), f.new_label("do"), f.new_label("done")
    entry = f.block
    f.br(head)
    f.start(head)
    with f.sealed():
        saved = _Saved(s)
        carried = {k: f.reserve(v.type) for k, v in zip(scalars, starts, strict=True)}
        mark = len(f.lines)
        if _loads_scalars(op):
            f.fence()  # it may wait for what another program stores, so every iteration loads anew
        for k, v in enumerate(before.args):
            s.env[v] = buffers[k] if k in buffers else carried[k]
        with f.divisible():
            s.block(before)
        end = before.ops[-1]
        s.position = end.index
        cond = s.scalar(end.args[0])
        forwarded = end.args[1:]
        out: list[Reg | Buffer] = []
        for v in forwarded:
            if not v.is_tile:
                out.append(s.scalar(v))
                continue
            have = s.env.get(v)
            if isinstance(have, Buffer):
                out.append(have)
            else:
                buffer = s.arena.allocate(v, s.position, last)
                s.write_into(v, buffer)
                s.flush()
                out.append(buffer)
        f.cond_br(cond, inside, done)
        f.start(inside)
        for v, have in zip(after.args, out, strict=True):
            s.env[v] = have
        again = _region(s, after, scalars, buffers)
        s.context.polling.end_iteration(f, op)
    latch = f.block
    f.br(head)
    phis = [
        f"  {carried[k].name} = phi {carried[k].type} [ {v.name}, %{entry} ], [ {r.name}, %{latch} ]"
        for k, v, r in zip(scalars, starts, again, strict=True)
    ]
    f.lines[mark:mark] = phis
    f.start(done)
    s.position = op.last
    saved.restore()
    for r, have in zip(op.results, out, strict=True):
        s.env[r] = have


def emit_blocks(s: Scheduler, blocks: list[Block]) -> None:
    """A function's blocks: one in our own IR, several where Triton made branches of early returns."""
    f = s.f
    if len(blocks) == 1:
        with f.divisible():
            s.block(blocks[0])
        f.ret()
        return
    labels = {id(b): f.new_label("bb") for b in blocks}
    incoming: dict[int, list[tuple[str, list[Value], dict[Value, Reg | Buffer]]]] = {id(b): [] for b in blocks}
    tiles = {id(a): s.arena.allocate(a, 0, s.program.count) for b in blocks[1:] for a in b.args if a.is_tile}
    for n, block in enumerate(blocks):
        if n:
            f.start(labels[id(block)])
            _enter_block(s, block, incoming[id(block)], tiles)
        with f.divisible():
            regs = _in_block(s, block, tiles)
        end = block.ops[-1]
        if end.name == "tt.return":
            f.ret()
            continue
        for target, args in end.successors:
            incoming[id(target)].append((f.block, args, dict(s.env)))
        if end.name == "cf.cond_br":
            f.cond_br(regs[0], labels[id(end.successors[0][0])], labels[id(end.successors[1][0])])
        else:
            f.br(labels[id(end.successors[0][0])])


def _in_block(s: Scheduler, block: Block, tiles: dict[int, Buffer]) -> list[Reg]:
    """Emit a block of several; gives the scalars that it ends with."""
    s.block(block)
    end = block.ops[-1]
    s.position = end.index
    if end.name == "tt.return":
        return []
    for load in list(s.pending_loads):
        if load.result not in s.env and s.needed_later(load.result, set()):
            s.materialise(load.result)
    for target, args in end.successors:
        _assign(s, end, [(a, tiles[id(p)]) for p, a in zip(target.args, args, strict=True) if p.is_tile])
    return [s.scalar(a) for a in end.args if not a.is_tile]


def _enter_block(
    s: Scheduler,
    block: Block,
    incoming: list[tuple[str, list[Value], dict[Value, Reg | Buffer]]],
    tiles: dict[int, Buffer],
) -> None:
    if not incoming:  # not reachable
        return
    common = dict(incoming[0][2])
    for _, _, env in incoming[1:]:
        common = {k: v for k, v in common.items() if env.get(k) is v}
    for k, a in enumerate(block.args):
        if a.is_tile:
            common[a] = tiles[id(a)]
            continue
        pairs = []
        for label, args, env in incoming:
            reg = env[args[k]]
            assert isinstance(reg, Reg)
            pairs.append((reg, label))
        common[a] = s.f.phi(llvm_type(a.elem), pairs)
    s.env.clear()
    s.env.update(common)
    s.pending_loads = [op for op in s.pending_loads if op.result not in s.env]

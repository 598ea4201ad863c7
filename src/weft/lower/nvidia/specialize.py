"""Lower ttg.warp_specialize: partitions with warps of their own, which run concurrently with the rest of the kernel.

The whole kernel becomes one `partitions` operation: region 0 is the kernel itself, executed by its own warps; each
other region is executed by additional warps. All warps meet at barrier 1 where a warp_specialize begins and where it
ends:

    region 0, the kernel               a partition
      ...                                barrier 1
      barrier 1                          ... the partition's code
      ... the default region             barrier 1
      barrier 1
      ...

If a barrier of the cluster comes right before a warp_specialize, all warps of all blocks meet at that barrier instead.
The hardware has a barrier for all of them; for the kernel's own warps alone, an mbarrier would have to take its place.

If a warp_specialize is inside a loop or a branch, the number of its executions is unknown. The kernel then writes to a
word of shared memory, before each first barrier, which partition code comes next, and the partitions loop until that
word says that the kernel ends.

A value that a partition captures is computed in it again if that takes only the kernel's arguments, constants and
addresses of buffers; all others go through shared memory. setmaxnreg sets one number of registers for the warps of a
warp group, so partitions are padded to whole groups of four warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation, Region, SSAValue

from weft.analysis import is_cluster_barrier
from weft.base import CompilationError, Span, Unsupported
from weft.base.remarks import Site as Side
from weft.ir import ints_of, span_of, walk
from weft.ir.lane import ELEMENT_BITS, Block, LaneOp, Value, is_elementwise
from weft.ir.nvidia.ttng import LATE
from weft.targets.table import first_with, has, instruction

from ..context import Context
from .exchange import ARRIVE, ARRIVE_EARLY, WAIT
from .mbarriers import elected, makes_barriers
from .table import lowering

ALL = 1
"""The barrier of all warps; 0 is the kernel's own, partitions have 2 and on."""
LARGEST = 16
LOAD = "ttng.async_tma_copy_global_to_local"
MOST_REGISTERS, REGISTER_STEP = 256, 8
"""What setmaxnreg takes at most, and a multiple of what, by PTX's definition of it."""
PURE = ("constant", "linear", "program_id", "num_programs", "shared", "scratch", "rename", "join")


@dataclass
class Site:
    """One warp_specialize: its number, what its partitions are given, where it is entered."""

    op: Operation
    number: int
    regions: list[Region]
    warps: list[int]
    registers: list[int]
    captured: list[Value] = field(default_factory=list)
    """What region 0 has of each captured value; of those that are passed in memory their address."""
    passed: dict[int, Value] = field(default_factory=dict)
    arrival: str = ""
    """How all warps of the cluster arrive where it is entered; none if those of the block alone meet there."""


@dataclass
class Crew:
    """Further warps: where they begin, how many, and the partition that they are at each site."""

    start: int
    warps: int
    parts: dict[int, int]
    registers: int = 0


def _site(op: Operation, number: int) -> Site:
    holder = op.regions[1].block.first_op
    assert holder is not None
    warps = list(ints_of(op.properties["partitionNumWarps"]))
    requested = op.properties.get("requestedRegisters", op.attributes.get("requestedRegisters"))
    registers = list(ints_of(requested)) if requested is not None else [0] * len(warps)
    return Site(op, number, list(holder.regions), warps, registers)


def lower_body(c: Context, ops: Sequence[Operation], cap: int = 0) -> None:
    """Lower the operations of a kernel; with partitions where it has any. `cap` is `maxnreg`, or 0."""
    specialized = [op for outer in ops for op in walk(outer) if op.name == "ttg.warp_specialize"]
    if not specialized:
        c.block(ops)
        return
    sites = [_site(op, i) for i, op in enumerate(specialized)]
    _check_budgets(c, sites)
    crews = _crews(c, sites)
    nested = any(op not in ops for op in specialized)
    c.specialized = _Specialized(c, sites, crews, nested)
    c.specialized.lower(ops, cap)


def _where(sites: Sequence[Site]) -> Span | None:
    """The warp_specialize that an error is about: of several the one with most warps."""
    return span_of(max(sites, key=lambda site: sum(site.warps)).op)


def _check_budgets(c: Context, sites: Sequence[Site]) -> None:
    """A thread has so many registers at most, and only some targets can move them from warps to others."""
    for site in sites:
        if not all(0 <= count <= MOST_REGISTERS for count in site.registers):
            raise CompilationError(
                f"partitions that ask for {site.registers} registers: a thread may have 24 to {MOST_REGISTERS}",
                span_of(site.op),
                hint="0 in worker_num_regs asks for none in particular",
            )
    move = instruction("setmaxnreg.dec")
    if has(c.program.machine, move.name):
        return
    for site in sites:
        if any(site.registers):
            raise Unsupported(
                f"a number of registers for each partition ({site.registers}, by setmaxnreg)",
                c.program.target,
                span_of(site.op),
                works_on=first_with(move.name),
                hint=f"worker_num_regs={[0] * len(site.warps)} asks for none: all threads have the same number, on any "
                f"target; with these numbers it works on {first_with(move.name)[0]}",
            )


def _crews(c: Context, sites: Sequence[Site]) -> list[Crew]:
    """Warps for the partitions of all sites: those of one size are the same warps at every site."""
    crews: list[Crew] = []
    for site in sites:
        for part, count in enumerate(site.warps):
            free = next((x for x in crews if x.warps == count and site.number not in x.parts), None)
            if free is None:
                free = Crew(0, count, {})
                crews.append(free)
            free.parts[site.number] = part
            free.registers = max(free.registers, site.registers[part])
    at = c.program.warps
    crews.sort(key=lambda x: -x.warps)
    for crew in crews:
        crew.start = at
        at += crew.warps
    most = c.machine.block_threads
    if c.machine.threads(at) > most:
        raise CompilationError(
            f"{c.program.warps} warps and partitions with {at - c.program.warps} more are {c.machine.threads(at)} "
            f"threads; a block has at most {most}",
            _where(sites),
            hint="fewer warps in worker_num_warps, or a smaller num_warps",
        )
    if ALL + 1 + len(crews) > LARGEST:
        raise CompilationError(
            f"{len(crews)} partitions need more barriers than the {LARGEST} of a block", _where(sites)
        )
    return crews


class _Specialized:
    def __init__(self, c: Context, sites: list[Site], crews: list[Crew], nested: bool) -> None:
        self.c, self.sites, self.crews, self.nested = c, {s.op: s for s in sites}, crews, nested
        self.main_warps = c.program.warps
        end = max(x.start + x.warps for x in crews)
        self.total = -(-end // 4) * 4 if any(x.registers for x in crews) else end
        self.state: Value | None = None

    def lower(self, ops: Sequence[Operation], cap: int) -> None:
        c, top = self.c, self.c.program.body
        budget = self._budget(cap)
        with c.inside(Block()) as kernel:
            c.build.partition = (0, self.main_warps)
            if budget:
                kind = "dec" if budget <= c.program.registers else "inc"
                c.build.instruction(f"setmaxnreg.{kind}", [c.number(budget)])
            if self.nested:
                self.state = c.allocate(4, "which partitions are next", 4)
            c.block([op for op in ops if op.name != "tt.return"])
            if self.state is not None:
                self._say(0)
                self.meet()
            c.build.add("yield")
        regions = [kernel, *(self._crew(crew, i) for i, crew in enumerate(self.crews))]
        starts, warps = [0, *(x.start for x in self.crews)], [self.main_warps, *(x.warps for x in self.crews)]
        end = starts[-1] + warps[-1]
        if self.total > end:  # the rest of the last warp group only gives its registers away
            regions.append(self._idle())
            starts.append(end)
            warps.append(self.total - end)
        c.program.warps = self.total
        c.build.block = top
        c.build.add("partitions", (), (), {"starts": tuple(starts), "warps": tuple(warps)}, regions)
        c.build.add("return")

    def meet(self, arrival: str = "") -> None:
        """All warps of the block; with an `arrival` of the cluster."""
        if arrival:
            for name in (arrival, WAIT):
                self.c.build.instruction(name, [])
            return
        attrs = {"scope": "block", "inserted": False, "id": ALL, "warps": self.total}
        self.c.build.add("barrier", (), (), attrs)
        sides = Side("the kernel's own warps"), Side("its partitions")
        self.c.program.between[self.c.build.block.ops[-1]] = "shared", *sides

    # -- registers ----------------------------------------------------------------------------------------------------

    def _groups(self) -> dict[int, int]:
        """Registers that each warp group of partitions asks for."""
        registers: dict[int, int] = {}
        for crew in self.crews:
            for group in range(crew.start // 4, (crew.start + crew.warps - 1) // 4 + 1):
                registers[group] = max(registers.get(group, 24), -(-crew.registers // REGISTER_STEP) * REGISTER_STEP)
        return registers

    def _budget(self, cap: int) -> int:
        """What a thread of the kernel itself may have, after the partitions have given theirs away; 0 if none do."""
        if not any(x.registers for x in self.crews):
            return 0
        if self.main_warps % 4:
            return 0
        machine = self.c.machine
        threads = machine.threads(self.total)
        each = (cap or min(machine.thread_registers, machine.registers // threads)) // REGISTER_STEP * REGISTER_STEP
        self.c.program.registers = each
        left = each * threads - sum(n * machine.threads(4) for n in self._groups().values())
        budget = min(MOST_REGISTERS, left // (self.main_warps * machine.lanes)) // REGISTER_STEP * REGISTER_STEP
        if budget < 24:
            raise CompilationError(
                f"partitions that ask for {[x.registers for x in self.crews]} registers leave {budget} for the kernel "
                "itself; 24 is the least",
                _where(list(self.sites.values())),
                hint="smaller numbers in worker_num_regs; a warp group of four warps has the largest that is asked for",
            )
        return budget

    def _give(self, crew: Crew) -> None:
        if self.c.program.registers:
            wanted = self._groups()[crew.start // 4]
            kind = "dec" if wanted <= self.c.program.registers else "inc"
            self.c.build.instruction(f"setmaxnreg.{kind}", [self.c.number(wanted)])

    def _prefetch(self, crew: Crew) -> None:
        """While mbarriers are made, have the copy engine fetch the tensor maps by which a crew loads."""
        maps: dict[Value, None] = {}
        for site in self.sites.values() if not self.nested else ():
            region = site.regions[crew.parts[site.number]] if site.number in crew.parts else None
            for op in walk(region.block) if region is not None else ():
                if op.name == LOAD and (value := self._argument(site, region, op.operands[0])) is not None:
                    maps[value] = None
        if not maps:
            return
        active = elected(self.c, whichever=True)
        for value in maps:
            self.c.build.instruction("tensormap.prefetch", [value, active])

    def _argument(self, site: Site, region: Region | None, captured: SSAValue) -> Value | None:
        """The kernel's argument that a region's argument stands for; None where it is another value."""
        if not isinstance(captured, BlockArgument) or region is None or captured.block is not region.block:
            return None
        value = self.c[site.op.operands[captured.index]]
        return value if value in self.c.program.body.arguments else None

    def _idle(self) -> Block:
        """Warps that only make a warp group whole: they come to every meeting."""
        last = self.crews[-1]
        crew = Crew(last.start + last.warps, self.total - last.start - last.warps, {}, last.registers)
        return self._crew(crew, len(self.crews))

    # -- the kernel's side --------------------------------------------------------------------------------------------

    def enter(self, site: Site) -> None:
        """Where the kernel comes to a warp_specialize."""
        c = self.c
        site.arrival = self._arrival()
        for i, operand in enumerate(site.op.operands):
            value = c[operand]
            site.captured.append(value)
            if not _again(c, value):
                address = c.allocate(max(8, ELEMENT_BITS[value.elem] // 8), "captured", 8)
                c.build.store("shared", address, value, 1, elected(c))
                site.passed[i] = address
        if self.state is not None:
            self._say(site.number + 1)
        self._begin(site)
        results = self._inline(site.op.regions[0])
        c.set_all(site.op.results, results)
        self.meet()

    def _begin(self, site: Site) -> None:
        """Meet the partitions, before whatever the kernel has only computed: nobody has to wait for that.

        Registers are waited for after that, if the kernel has done nothing yet but make mbarriers.
        """
        block = self.c.build.block
        ops = block.ops
        at = next((i for i in range(len(ops), 0, -1) if not _computes(ops[i - 1])), 0)
        computed, block.ops = ops[at:], ops[:at]
        if not self.nested and all(map(_tells_nothing, block.ops)):
            computed[:0] = filter(_moves_registers, block.ops)
            block.ops = [op for op in block.ops if not _moves_registers(op)]
        self.meet(site.arrival)
        block.ops += computed

    def _arrival(self) -> str:
        """Take out the barrier of the cluster that comes last, if one does: how all warps arrive instead.

        Blocks that have done nothing but make mbarriers have only those to tell of. An arrival that releases whatever
        was written would wait for the memory, as would the fence after the mbarriers.
        """
        ops = self.c.build.block.ops
        if self.nested or not ops or not is_cluster_barrier(ops[-1], "wait"):
            return ""
        ops.pop()
        if not all(_tells_nothing(op) for op in ops):
            return ARRIVE
        ops[:] = [op for op in ops if not op.attrs.get("made_barriers")]
        return ARRIVE_EARLY

    def _inline(self, region: Region) -> list[Value]:
        *body, last = list(region.block.ops)
        self.c.block(body)
        return [self.c.whole(x) for x in last.operands]

    def _say(self, state: int) -> None:
        assert self.state is not None
        self.c.build.store("shared", self.state, self.c.number(state), 1, elected(self.c))

    # -- the partitions' side -----------------------------------------------------------------------------------------

    def _crew(self, crew: Crew, index: int) -> Block:
        c = self.c
        with c.inside(Block()) as block:
            c.build.partition = (ALL + 1 + index, crew.warps)
            c.program.warps = crew.warps
            self._give(crew)
            self._prefetch(crew)
            if self.nested:
                self._go_round(crew)
            else:
                for site in self.sites.values():
                    self._part(site, crew)
            c.build.add("yield")
        return block

    def _part(self, site: Site, crew: Crew) -> None:
        """One site: wait for it, do this crew's part, if it has one."""
        if not self.nested:
            self.meet(site.arrival)
        part, late = crew.parts.get(site.number), list[Operation]()
        if part is not None:
            region = site.regions[part]
            self._bind(site, region)
            ops = [op for op in region.block.ops if op.name != "ttg.warp_return"]
            late = [op for op in ops if LATE in op.attributes and not self.nested]
            self.c.block([op for op in ops if op not in late])
        if not self.nested:
            self.meet()
        self.c.block(late)

    def _bind(self, site: Site, region: Region) -> None:
        """The region's arguments: computed again, or loaded."""
        c = self.c
        copies: dict[Value, Value] = {}
        for i, argument in enumerate(region.block.args):
            value = site.captured[i]
            if i in site.passed:
                c[argument] = c.build.load("shared", _copied(c, site.passed[i], copies), value.elem)
            else:
                c[argument] = _copied(c, value, copies)
            c.stays(argument, site.op.operands[i])

    def _go_round(self, crew: Crew) -> None:
        """while (what is next is not the end) { that; barrier }"""
        c = self.c
        with c.inside(Block()) as asking:
            self.meet()
            assert self.state is not None
            state = c.build.load("shared", _copied(c, self.state, {}), "i32")
            going = c.build.op("arith.cmpi", [state, c.number(0)], "i1", predicate=1)
            c.build.add("condition", [going, state])
        with c.inside(Block((Value("i32", 1),))) as doing:
            for site in self.sites.values():
                if site.number in crew.parts:
                    self._where(doing.arguments[0], site, crew)
            self.meet()
            c.build.add("yield")
        c.build.add("while", (), [("i32", 1)], {}, [asking, doing])

    def _where(self, state: Value, site: Site, crew: Crew) -> None:
        c = self.c
        mine = c.build.op("arith.cmpi", [state, c.number(site.number + 1)], "i1", predicate=0)
        with c.inside(Block()) as then:
            self._part(site, crew)
            c.build.add("yield")
        with c.inside(Block()) as otherwise:
            c.build.add("yield")
        c.build.add("if", [mine], (), {}, [then, otherwise])


def _computes(op: LaneOp) -> bool:
    """Whether an operation only computes something."""
    return op.name in (*PURE, "select", "elect") or is_elementwise(op.name)


def _moves_registers(op: LaneOp) -> bool:
    return op.name == "instruction" and str(op.attrs["isa"]).startswith("setmaxnreg.")


def _tells_nothing(op: LaneOp) -> bool:
    """Whether an operation makes mbarriers, or does nothing that others may have to know of."""
    return _computes(op) or makes_barriers(op) or _moves_registers(op) or bool(op.attrs.get("made_barriers"))


def _again(c: Context, value: Value) -> bool:
    """Whether a value can be computed once more from constants and the program's arguments."""
    op = value.op
    if op is None:
        return value in c.program.body.arguments
    pure = op.name in PURE or is_elementwise(op.name)
    return pure and not op.regions and all(_again(c, v) for v in op.operands)


def _copied(c: Context, value: Value, copies: dict[Value, Value]) -> Value:
    """The value, computed once more here."""
    op = value.op
    if op is None:
        return value
    if value not in copies:
        operands = [_copied(c, v, copies) for v in op.operands]
        lane_op: LaneOp = c.build.add(op.name, operands, [(r.elem, r.count) for r in op.results], dict(op.attrs))
        copies[value] = lane_op.results[op.results.index(value)]
    return copies[value]


@lowering("ttg.warp_specialize")
def _warp_specialize(c: Context, op: Operation) -> None:
    specialized = c.specialized
    if not isinstance(specialized, _Specialized) or c.build.partition is None or c.build.partition[0] != 0:
        raise Unsupported("a warp_specialize inside of a partition", c.program.target, c.build.span)
    specialized.enter(specialized.sites[op])

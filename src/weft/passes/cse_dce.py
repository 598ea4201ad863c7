"""Fold constants, share equal operations and drop unused ones, in one walk forward and one back.

    %a = arith.muli %pid, %c64           %a = arith.muli %pid, %c64
    %b = arith.muli %pid, %c64     ->    %s = arith.addi %a, %a
    %z = arith.addi %b, %c0
    %s = arith.addi %a, %z

An operation is shared with an equal one before it in the same block or in a block around it (an operation inside of a
branch is not seen outside). Linear in the number of operations: an operation is looked up by its name, operands,
properties and result types. Also: a load or store whose mask is known, an `scf.if` whose condition is known, a loop
that is known to have one iteration or none (single_iterations.py), and pure loops and branches whose results nobody
uses. Not done here: moving operations out of loops; sharing reductions.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import Builder, is_float, is_int, segments, tt
from weft.ir.check.control import Isolated
from weft.ops.table import ROWS

from .effects import droppable, shareable
from .fold import Folder, constant_of
from .removal import put_in_place, remove
from .single_iterations import enter_known_loop

_ISOLATED = (tt.FuncOp, Isolated)
_COMMUTES = frozenset(name for name, row in ROWS.items() if row.commutes)


def cse_dce(root: Operation, fuse: bool = True, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite what `root` (a module, a function) holds; with `fuse`, a product and a sum may be rounded together."""
    walk = _Walk(fuse, remarks)
    walk.inside(root)
    _sweep(root)


class _Walk:
    """The walk forward: operations seen, in scopes."""

    def __init__(self, fuse: bool, remarks: RemarkCollector) -> None:
        self.remarks = remarks
        self.folder = Folder(fuse)
        self._seen: dict[object, Operation] = {}
        self._log: list[object] = []
        self._by_value: dict[Attribute, int] = {}
        self._by_object: dict[int, tuple[Attribute, int]] = {}

    def _number(self, attribute: Attribute) -> int:
        """The same for equal attributes; what was seen before is not hashed again, which takes long for types."""
        numbered = self._by_object.get(id(attribute))
        if numbered is None:
            numbered = attribute, self._by_value.setdefault(attribute, len(self._by_value))
            self._by_object[id(attribute)] = numbered  # with the attribute, so that no other gets its id
        return numbered[1]

    def _key(self, op: Operation) -> object:
        """Equal for operations that compute the same."""
        operands = tuple([id(v) for v in op.operands])
        if len(operands) == 2 and operands[0] > operands[1] and op.name in _COMMUTES:
            operands = operands[::-1]
        types = tuple([self._number(r.type) for r in op.results])
        return op.name, operands, self._numbers(op.properties), self._numbers(op.attributes), types

    def _numbers(self, named: dict[str, Attribute]) -> tuple[tuple[str, int], ...]:
        """The same for properties, or attributes, that are equal."""
        return tuple(sorted([(name, self._number(attribute)) for name, attribute in named.items()])) if named else ()

    def inside(self, op: Operation) -> None:
        """Walk the regions of `op`."""
        saved = self._seen, self._log
        if isinstance(op, _ISOLATED):
            self._seen, self._log = {}, []
        for region in op.regions:
            mark = len(self._log)
            first_end = mark
            for i, block in enumerate(list(region.blocks)):
                if i == 1:
                    first_end = len(self._log)
                self._block(block)
                if i > 0:  # only the first block dominates the others for sure
                    self._forget(first_end)
            self._forget(mark)
        self._seen, self._log = saved

    def _forget(self, mark: int) -> None:
        while len(self._log) > mark:
            del self._seen[self._log.pop()]

    def _block(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            before = op.prev_op
            if self._operation(op) and op.parent is None:
                # What a fold put in the place of the operation is looked at like any other.
                current = before.next_op if before is not None else block.first_op
                while current is not None and current is not following:
                    after = current.next_op
                    self._operation(current)
                    current = after
            op = following

    def _operation(self, op: Operation) -> bool:
        """Fold or share one operation. True if it is gone."""
        if op.regions:
            if isinstance(op, scf.IfOp) and _known_branch(op):
                return True
            if isinstance(op, scf.ForOp) and enter_known_loop(op, self.remarks):
                return True
            self.inside(op)
            return False
        kind = type(op)
        if kind is tt.LoadOp or kind is tt.StoreOp:
            return _known_mask(op)  # type: ignore[arg-type]
        if len(op.results) == 1:
            value = self.folder.fold(op)
            if value is not None:
                _replace(op, value)
                return True
        if not shareable(op):
            return False
        key = self._key(op)
        earlier = self._seen.get(key)
        if earlier is None:
            self._seen[key] = op
            self._log.append(key)
            return False
        for old, new in zip(op.results, earlier.results, strict=True):
            old.replace_all_uses_with(new)
        remove(op)
        return True


def _replace(op: Operation, value: SSAValue) -> None:
    result = op.results[0]
    if value.name_hint is None and result.name_hint is not None:
        value.name_hint = result.name_hint
    result.replace_all_uses_with(value)
    remove(op)


def _known_branch(op: scf.IfOp) -> bool:
    """Put the branch that is taken in the place of an `scf.if` whose condition is known."""
    condition = constant_of(op.operands[0])
    if condition is None:
        return False
    region = op.regions[0] if condition else op.regions[1]
    blocks = list(region.blocks)
    if len(blocks) > 1 or op.parent is None:
        return False
    put_in_place(op, blocks[0] if blocks else None)
    return True


def _known_mask(op: tt.LoadOp | tt.StoreOp) -> bool:
    """Drop a mask that is always true, and an access whose mask never is. True if the access is gone."""
    mask = op.mask
    constant = constant_of(mask) if mask is not None else None
    if constant is None:
        return False
    if isinstance(op, tt.StoreOp):
        if constant:
            op.operands = list(op.operands)[:2]
            return False
        remove(op)
        return True
    if constant:
        op.operands = [op.ptr]
        op.properties["operandSegmentSizes"] = segments(1, 0, 0)
        return False
    other = op.other
    if other is None:
        type = op.results[0].type
        if not (is_int(type) or is_float(type)):
            return False
        other = Builder.before(op).constant(0, type)
    _replace(op, other)
    return True


def _sweep(root: Operation) -> None:
    """The walk back: drop what nobody uses, users before what they use."""
    for region in root.regions:
        for block in reversed(list(region.blocks)):
            op = block.last_op
            while op is not None:
                before = op.prev_op
                if op.regions:
                    _sweep(op)
                if all(r.first_use is None for r in op.results) and droppable(op):
                    remove(op)
                op = before

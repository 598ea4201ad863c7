"""The checks that every operation passes before its own rule, and the walk over a module: `verify`.

For each operation: it has the operands, results, regions and properties that its class says; its types are ones that
tile IR has (tiles with dimensions that are powers of two, at most 2^20 elements); what it uses is defined before it.
For each block: it ends in what may end it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from xdsl import irdl
from xdsl.dialects import builtin, ub
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from weft.base import CompilationError, postorder

from .. import tt
from ..text import OPERATIONS, type_text
from ..text.examples import written
from ..text.tokens import MAX_DEPTH
from ..text.types import TYPES
from ..types import Encoding, Laid, PtrType, TensorDescType, is_float
from ..walking import successors, walk
from .attributes import attribute_error, attribute_hint
from .control import ENDS, ISOLATED
from .rules import LAYOUT_RULES, RULES, fail

MAX_NUMEL = 1 << 20
"""Most elements of a tile (`TRITON_MAX_TENSOR_NUMEL`)."""

_WIDTHS = (1, 8, 16, 32, 64)

KINDS: dict[str, type[Attribute]] = {
    **dict.fromkeys(
        ("axis", "start", "end", "pack", "packed_element", "predicate", "maxNumImpreciseAcc"), builtin.IntegerAttr
    ),
    **dict.fromkeys(
        ("cache", "evict", "padding", "rounding", "propagateNan", "inputPrecision", "kind"), builtin.IntegerAttr
    ),
    **dict.fromkeys(("atomic_rmw_op", "sem", "scope", "a_elem_type", "b_elem_type", "fastMath"), builtin.IntegerAttr),
    **dict.fromkeys(("lhs_k_pack", "rhs_k_pack", "isVolatile", "reverse", "hex", "pure"), builtin.IntegerAttr),
    **dict.fromkeys(("order", "boundaryCheck", "isSigned", "operandSegmentSizes"), builtin.DenseArrayBase),
    **dict.fromkeys(
        ("sym_name", "sym_visibility", "prefix", "message", "asm_string", "constraints"), builtin.StringAttr
    ),
    **dict.fromkeys(("elem_type", "interleave_layout", "swizzle_mode", "fill_mode"), builtin.IntegerAttr),
    "callee": builtin.SymbolRefAttr,
    "function_type": builtin.FunctionType,
}
"""What kind of attribute each property is, by name."""


# -- types ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def type_error(type: Attribute, laid: bool = False) -> str | None:
    """Why a type is not one of tile IR (of layout IR, where `laid`); None where it is."""
    if isinstance(type, builtin.IntegerType):
        if type.signedness.data != builtin.Signedness.SIGNLESS:
            return f"{type_text(type)} has a sign, which only the block of a descriptor may have"
        if type.width.data not in _WIDTHS:
            return f"integers have 1, 8, 16, 32 or 64 bits, not {type.width.data}"
        return None
    if isinstance(type, builtin.IndexType) or (is_float(type) and not isinstance(type, builtin.TensorType)):
        return None
    if isinstance(type, builtin.TensorType):
        return _tile_error(type) or _encoding_error(type, laid)
    if isinstance(type, PtrType):
        return type_error(type.pointee, laid)
    if isinstance(type, TensorDescType):
        encoded = isinstance(type.block_type.encoding, Encoding)
        return _tile_error(type.block_type) or _encoding_error(type.block_type, laid and encoded)
    if isinstance(type, Laid) and laid:
        return type.problem()
    return f"{type_text(type)} is not a type of tile IR"


def _right_type(problem: str) -> str:
    """The way out of a problem with a type."""
    if "power of two" in problem or "at most" in problem:
        return "take a power of two, and leave out what is too much with a mask"
    return f"{TYPES}; in layout IR a tile has a layout too, tensor<16x32xf32, #blocked>"


def _tile_error(type: builtin.TensorType[Attribute]) -> str | None:
    shape = tuple(d.data for d in type.shape.data)
    numel = 1
    for extent in shape:
        if extent < 1 or extent & (extent - 1):
            near = f" (the nearest are {_below(extent)} and {_below(extent) * 2})" if extent > 0 else ""
            return f"{type_text(type)}: every dimension of a tile is a power of two, {extent} is not{near}"
        numel *= extent
    if numel > MAX_NUMEL:
        return f"{type_text(type)}: a tile has at most {MAX_NUMEL} elements, not {numel}"
    element = type.element_type
    if isinstance(element, builtin.TensorType | TensorDescType):
        return f"{type_text(type)}: the elements of a tile are scalars"
    if isinstance(element, builtin.IntegerType):
        return None if element.width.data in _WIDTHS else type_error(element)
    return type_error(element)


def _encoding_error(type: builtin.TensorType[Attribute], laid: bool) -> str | None:
    if laid and not isinstance(type.encoding, Encoding):
        return f"{type_text(type)}: a tile has a layout here"
    if not laid and type.encoding.name != "none":
        return f"{type_text(type)}: a tile has no encoding yet"
    return None


def _below(extent: int) -> int:
    return 1 << (extent.bit_length() - 1)


# -- one operation -------------------------------------------------------------------------------------------------


class _Form:
    """What the class of an operation says, looked up once."""

    def __init__(self, cls: type[Operation]):
        definition = cls.get_irdl_definition()  # type: ignore[attr-defined]
        self.operands = [(name, isinstance(d, irdl.VarOperandDef)) for name, d in definition.operands]
        self.results = [(name, isinstance(d, irdl.VarResultDef)) for name, d in definition.results]
        self.optional = any(isinstance(d, irdl.OptOperandDef | irdl.OptResultDef) for _, d in definition.operands)
        self.sized = any(isinstance(o, irdl.AttrSizedOperandSegments) for o in definition.options)
        self.equal = any(isinstance(o, irdl.SameVariadicOperandSize) for o in definition.options)
        many = any(isinstance(d, irdl.VarRegionDef) for _, d in definition.regions)
        self.regions = None if many else len(definition.regions)
        self.successors = len(definition.successors)
        registered = OPERATIONS.get(cls.name)
        defaults = ("overflowFlags", "fastmath", "value") if cls.name != "arith.constant" else ()
        self.required = [
            (d.attr_name if getattr(d, "attr_name", None) else getattr(d, "prop_name", None)) or name
            for name, d in definition.properties.items()
            if type(d).__name__ == "PropertyDef" and name not in defaults
        ]
        self.known = registered is cls
        self.ends = cls.has_trait(IsTerminator)


_form = cache(_Form)


def _count(op: Operation, groups: Sequence[tuple[str, bool]], count: int, subject: str, equal: bool) -> None:
    """Check a number of operands or results against groups of one (or none) and groups of any number."""
    single = sum(1 for _, many in groups if not many)
    many = len(groups) - single
    if many == 0 and count != single:
        fail(op, f"{subject}: {count}, expected {single}")
    if count < single:
        fail(op, f"{subject}: {count}, expected at least {single}")
    if equal and many > 1 and (count - single) % many:
        fail(op, f"{subject}: {count - single} cannot be {many} groups of one size")


def _structure(op: Operation) -> _Form:
    form = _form(type(op))
    if not form.known:
        fail(op, "is not an operation of tile IR")
    if form.sized:
        sizes = op.properties.get("operandSegmentSizes")
        values = list(sizes.get_values()) if isinstance(sizes, builtin.DenseArrayBase) else []
        if len(values) != len(form.operands) or sum(values) != len(op.operands) or min(values, default=0) < 0:
            fail(
                op,
                f"operandSegmentSizes must split {len(op.operands)} operands into {len(form.operands)} groups",
                f"array<i32: ...> has the number of operands for each of {', '.join(n for n, _ in form.operands)}",
            )
    else:
        _count(op, form.operands, len(op.operands), "operands", form.equal)
    _count(op, form.results, len(op.results), "results", False)
    if form.regions is not None and len(op.regions) != form.regions:
        fail(op, f"regions: {len(op.regions)}, expected {form.regions}")
    if len(op.successors) != form.successors:
        fail(op, f"successors: {len(op.successors)}, expected {form.successors}")
    for name in form.required:
        if name not in op.properties:
            fail(op, f"'{name}' is missing")
    for name, value in op.properties.items():
        wanted = KINDS.get(name)
        if wanted is not None and not isinstance(value, wanted):
            fail(op, f"'{name}' must be {_KIND_WORDS[wanted]}")
    for name, value in op.attributes.items():
        wrong = attribute_error(name, value)
        if wrong is not None:
            fail(op, wrong, attribute_hint(name))
    return form


_KIND_WORDS: dict[type[Attribute], str] = {
    builtin.IntegerAttr: "an integer",
    builtin.DenseArrayBase: "an array of integers",
    builtin.StringAttr: "a string",
    builtin.SymbolRefAttr: "the name of a function",
    builtin.FunctionType: "the type of a function",
}


# -- the walk ------------------------------------------------------------------------------------------------------


class _Walk:
    """What is defined at the place that the walk has reached."""

    def __init__(self, laid: bool = False) -> None:
        self.laid = laid
        self.visible: set[SSAValue] = set()
        self.depth = 0

    def operation(self, op: Operation, reachable: bool = True) -> None:
        """Check an operation and what is in it."""
        try:
            self._operation(op, reachable)
        except (VerifyException, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            if isinstance(error, CompilationError):
                raise
            # Of a kind that no rule expects: what the rule then runs into is about the rule.
            told = f": {error}" if isinstance(error, VerifyException) else ""
            fail(op, f"an attribute or a type is of a kind that the operation cannot have{told}")

    def _operation(self, op: Operation, reachable: bool) -> None:
        form = _structure(op)
        for result in op.results:
            problem = type_error(result.type, self.laid)
            if problem is not None:
                fail(op, problem, _right_type(problem))
        if reachable:
            for i, value in enumerate(op.operands):
                if value not in self.visible:
                    fail(
                        op,
                        f"operand {i} ({type_text(value.type)}) is not defined before it is used",
                        "move the operation that defines it before this one, or to a place that always comes before",
                    )
        rule = RULES.get(type(op))
        if op.regions:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                fail(
                    op, f"nested too deep: more than {MAX_DEPTH} levels", "move the inner ones into a function, tt.call"
                )
            if isinstance(op, ISOLATED):
                outer, self.visible = self.visible, set()
                for region in op.regions:
                    self.region(region, op)
                self.visible = outer
            else:
                for region in op.regions:
                    self.region(region, op)
            self.depth -= 1
        if self.laid:
            layout_rule = LAYOUT_RULES.get(type(op))
            if layout_rule is not None:
                layout_rule(op)
        if rule is not None:
            rule(op)
        if form.ends and op.next_op is not None:
            fail(op, "ends a block, but more follows", "move it to the end, or begin a block after it, `^bb1:`")
        self.visible.update(op.results)

    def region(self, region: Region, parent: Operation) -> None:
        blocks = list(region.blocks)
        if len(blocks) > 1 and not isinstance(parent, tt.FuncOp | tt.MapElementwiseOp):
            fail(
                parent,
                f"a region of {len(blocks)} blocks, it must have one",
                "labels and branches belong in functions; use scf.if, scf.for and scf.while, or drop the label",
            )
        if len(blocks) < 2:
            for block in blocks:
                marked = self.block(block, parent, True)
                self.visible.difference_update(marked)
            return
        children, unreachable = _dominator_tree(blocks)
        stack: list[tuple[Block, bool]] = [(blocks[0], True)]
        marks: dict[Block, list[SSAValue]] = {}
        while stack:
            block, enter = stack.pop()
            if not enter:
                self.visible.difference_update(marks.pop(block))
                continue
            marks[block] = self.block(block, parent, True)
            stack.append((block, False))
            stack.extend((child, True) for child in children.get(block, ()))
        for block in unreachable:
            self.visible.difference_update(self.block(block, parent, False))

    def block(self, block: Block, parent: Operation, reachable: bool) -> list[SSAValue]:
        marked: list[SSAValue] = list(block.args)
        for argument in block.args:
            problem = type_error(argument.type, self.laid)
            if problem is not None:
                fail(parent, problem, _right_type(problem))
        self.visible.update(block.args)
        for op in block.ops:
            self.operation(op, reachable)
            marked.extend(op.results)
        ends = ENDS.get(type(parent))
        if ends is not None:
            last = block.last_op
            leaves = last is not None and bool(last.successors) and _form(type(last)).ends
            if not (leaves or isinstance(last, (*ends, ub.UnreachableOp))):
                hint = f"add a last line: {written(ends[0].name)}"
                fail(last or parent, f"a block of {parent.name} ends in {' or '.join(e.name for e in ends)}", hint)
        return marked


def _dominator_tree(blocks: list[Block]) -> tuple[dict[Block, list[Block]], list[Block]]:
    """For each block, those that it immediately dominates; and the blocks that nothing reaches."""
    order = postorder(blocks[0], successors)
    number = {block: i for i, block in enumerate(order)}
    before: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in successors(block):
            if successor in before:
                before[successor].append(block)
    parent: dict[Block, Block] = {blocks[0]: blocks[0]}
    changed = True
    while changed:
        changed = False
        for block in reversed(order):
            if block is blocks[0]:
                continue
            reached = [b for b in before[block] if b in parent]
            best = reached[0]
            for other in reached[1:]:
                while best is not other:
                    while number[best] < number[other]:
                        best = parent[best]
                    while number[other] < number[best]:
                        other = parent[other]
            if parent.get(block) is not best:
                parent[block] = best
                changed = True
    children: dict[Block, list[Block]] = {}
    for block, above in parent.items():
        if block is not above:
            children.setdefault(above, []).append(block)
    return children, [b for b in blocks if b not in number]


_AFTER_PASSES = (tt.CallOp, tt.MakeTensorPtrOp, tt.AdvanceOp, tt.MakeTensorDescriptorOp, tt.DotScaledOp)


def _only_tiles(op: Operation) -> None:
    """Stage `cpu`: what the passes for the CPU have replaced is gone."""
    if isinstance(op, _AFTER_PASSES) or op.successors:
        fail(op, "should have been rewritten")
    for value in (*op.operands, *op.results):
        if isinstance(value.type, TensorDescType):
            fail(op, "should have no tensor descriptor")


STAGES: dict[str, Callable[[Operation], None] | None] = {"tile": None, "cpu": _only_tiles}
"""The forms that a module has on its way, each with a check of single operations; `weft.ir.gpu` adds its own."""

LAID_STAGES: set[str] = set()
"""The stages in which tiles have layouts."""


def verify(module: Operation, stage: str = "tile") -> None:
    """Check a module (or a function). Raises `CompilationError`, at the place of the first operation that is wrong.

    `stage` is `tile` for a module as written, `cpu` after the passes for the CPU, and, where `weft.ir.gpu` has been
    imported, `layout` for one whose tiles have layouts and `gluon` for one in which some are to be inferred yet.
    """
    if stage not in STAGES:
        raise ValueError(f"unknown stage {stage!r}, expected one of {', '.join(STAGES)}")
    extra = STAGES[stage]
    _Walk(stage in LAID_STAGES).operation(module)
    if extra is not None:
        for op in walk(module):
            extra(op)

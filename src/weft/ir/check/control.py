"""Rules of functions, calls, loops, branches and what ends a block."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerType, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .. import tt
from ..text.examples import written
from ..types import i1
from .attributes import attribute_error, attribute_hint
from .rules import fail, rule, show

ENDS: dict[type[Operation], tuple[type[Operation], ...]] = {
    tt.FuncOp: (tt.ReturnOp,),
    tt.ReduceOp: (tt.ReduceReturnOp,),
    tt.ScanOp: (tt.ScanReturnOp,),
    tt.MapElementwiseOp: (tt.MapElementwiseReturnOp,),
    scf.ForOp: (scf.YieldOp,),
    scf.IfOp: (scf.YieldOp,),
    scf.WhileOp: (scf.YieldOp, scf.ConditionOp),
}
"""What ends a block, by the operation around it (beside branches to other blocks)."""


COMPARE = "arith.cmpi and arith.cmpf make one, and tt.reduce one of a tile of them"


class Isolated:
    """Marks operations of other dialects whose regions see nothing of the outside."""


ISOLATED = (tt.FuncOp, ModuleOp, Isolated)
"""Operations whose regions see nothing of the outside."""


def _types(values: Sequence[SSAValue]) -> list[Attribute]:
    return [v.type for v in values]


def _list(types: Sequence[Attribute]) -> str:
    return ", ".join(show(t) for t in types) or "nothing"


def _block(op: Operation, region: Region, subject: str) -> Block:
    blocks = list(region.blocks)
    if len(blocks) != 1:
        fail(op, f"{subject} has {len(blocks)} blocks, it must have one")
    return blocks[0]


def _ends(op: Operation, block: Block, end: type[Operation], wanted: Sequence[Attribute], subject: str) -> None:
    last = block.last_op
    if not isinstance(last, end):
        fail(op, f"{subject} must end in {end.name}", f"its last line is then: {written(end.name)}")
    handed = list(last.operands)[1:] if isinstance(last, scf.ConditionOp) else last.operands
    if _types(handed) != list(wanted):
        fail(
            last,
            f"expected {_list(wanted)}, got {_list(_types(handed))}",
            f"these are the types of {op.name}'s results",
        )


def _takes(op: Operation, block: Block, wanted: Sequence[Attribute], subject: str) -> None:
    if _types(block.args) != list(wanted):
        fail(op, f"{subject} takes {_list(wanted)}, not {_list(_types(block.args))}")


@rule(ModuleOp)
def _module(op: ModuleOp) -> None:
    names: set[str] = set()
    for inner in _block(op, op.regions[0], "a module").ops:
        if not isinstance(inner, tt.FuncOp):
            fail(inner, "a module holds functions (tt.func) only", "move it into the body of a function")
        if inner.sym_name.data in names:
            name = inner.sym_name.data
            fail(inner, f"there are two functions @{name}", f"rename one, @{name}_1, and the calls of it")
        names.add(inner.sym_name.data)


@rule(tt.FuncOp)
def _func(op: tt.FuncOp) -> None:
    if not isinstance(op.parent_op(), ModuleOp):
        fail(op, "a function belongs in a module, not in another operation", "move it out, and reach it with tt.call")
    inputs = list(op.function_type.inputs.data)
    outputs = list(op.function_type.outputs.data)
    for name, count in (("arg_attrs", len(inputs)), ("res_attrs", len(outputs))):
        attrs = op.properties.get(name)
        if attrs is not None and (not isinstance(attrs, ArrayAttr) or len(attrs.data) != count):
            fail(op, f"'{name}' must have one dictionary for each of {count}")
        for attributes in attrs.data if isinstance(attrs, ArrayAttr) else ():
            if not isinstance(attributes, DictionaryAttr):
                fail(op, f"'{name}' must have one dictionary for each of {count}")
            for key, value in attributes.data.items():
                wrong = attribute_error(key, value)
                if wrong is not None:
                    fail(op, wrong, attribute_hint(key))
    first = op.body.blocks.first
    if first is None:
        return
    _takes(op, first, inputs, "the first block")
    for block in op.body.blocks:
        last = block.last_op
        if isinstance(last, tt.ReturnOp) and _types(last.operands) != outputs:
            fail(
                last,
                f"the function returns {_list(outputs)}, got {_list(_types(last.operands))}",
                "let the types after the function's `->` and those of every tt.return be the same",
            )


@rule(tt.CallOp)
def _call(op: tt.CallOp) -> None:
    callee = op.properties["callee"]
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    if module is None or not isinstance(callee, SymbolRefAttr):
        return
    name = callee.root_reference.data
    for function in module.regions[0].block.ops:
        if isinstance(function, tt.FuncOp) and function.sym_name.data == name:
            wanted = function.function_type
            if _types(op.operands) != list(wanted.inputs.data):
                fail(
                    op,
                    f"@{name} takes {_list(wanted.inputs.data)}, not {_list(_types(op.operands))}",
                    "change what is passed, or the arguments in the function's first line",
                )
            if _types(op.results) != list(wanted.outputs.data):
                fail(
                    op,
                    f"@{name} returns {_list(wanted.outputs.data)}, not {_list(_types(op.results))}",
                    "change the types after `->` here, or those in the function's first line",
                )
            return
    names = [f.sym_name.data for f in module.regions[0].block.ops if isinstance(f, tt.FuncOp)]
    close = get_close_matches(name, names, 1, 0.0)
    fail(op, f"there is no function @{name}", f"did you mean @{close[0]}?" if close else "add it to the module")


@rule(scf.ForOp)
def _for(op: scf.ForOp) -> None:
    lower, upper, step, *init = op.operands
    if not isinstance(lower.type, IntegerType | IndexType) or not lower.type == upper.type == step.type:
        fail(op, f"bounds and step must be integers of one type, got {_list(_types((lower, upper, step)))}")
    if _types(init) != _types(op.results):
        fail(op, f"carries {_list(_types(init))}, but yields {_list(_types(op.results))}")
    body = _block(op, op.regions[0], "the body")
    _takes(op, body, [lower.type, *_types(init)], "the body")
    _ends(op, body, scf.YieldOp, _types(init), "the body")


@rule(scf.IfOp)
def _if(op: scf.IfOp) -> None:
    if op.operands[0].type != i1:
        fail(op, f"the condition is i1, got {show(op.operands[0])}", COMPARE)
    wanted = _types(op.results)
    for region, branch in zip(op.regions, ("the first branch", "the second branch"), strict=True):
        if branch == "the second branch" and not region.blocks:
            if wanted:
                fail(op, "yields values, so it needs both branches")
            continue
        block = _block(op, region, branch)
        _takes(op, block, (), branch)
        _ends(op, block, scf.YieldOp, wanted, branch)


@rule(scf.WhileOp)
def _while(op: scf.WhileOp) -> None:
    before, after = (_block(op, region, "a region") for region in op.regions)
    _takes(op, before, _types(op.operands), "the condition")
    _ends(op, before, scf.ConditionOp, _types(op.results), "the condition")
    condition = before.last_op
    if condition is not None and condition.operands[0].type != i1:
        fail(condition, f"the condition is i1, got {show(condition.operands[0])}", COMPARE)
    _takes(op, after, _types(op.results), "the body")
    _ends(op, after, scf.YieldOp, _types(op.operands), "the body")


def _reaches(op: Operation, block: Block, values: Sequence[SSAValue]) -> None:
    if block.parent is not op.parent_region():
        fail(op, "goes to a block of another region", "a region is left at its end, with scf.yield or tt.return")
    if block is block.parent.blocks.first:  # type: ignore[union-attr]
        fail(op, "goes to the first block, which nothing may go to", "put a `cf.br ^bb1` before it, and go to ^bb1")
    if _types(block.args) != _types(values):
        fail(
            op,
            f"the block takes {_list(_types(block.args))}, not {_list(_types(values))}",
            "what follows a label, ^bb1(%x: i32):, is what each branch to it passes, cf.br ^bb1(%a : i32)",
        )


@rule(cf.BranchOp)
def _br(op: Operation) -> None:
    _reaches(op, op.successors[0], op.operands)


@rule(cf.ConditionalBranchOp)
def _cond_br(op: cf.ConditionalBranchOp) -> None:
    if op.cond.type != i1:
        fail(op, f"the condition is i1, got {show(op.cond)}", COMPARE)
    _reaches(op, op.successors[0], op.then_arguments)
    _reaches(op, op.successors[1], op.else_arguments)

"""Replace calls by the bodies of the functions called, and drop those functions.

    %r = tt.call @double(%x) : (i32) -> i32
becomes
    %r = arith.addi %x, %x : i32

Each copied operation says where it came from and from where it was called. Functions are one block each by then (see
`structure_branches`). Recursion and functions without a body are errors.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import CompilationError
from weft.ir import call_site_loc, find, span_of, tt, type_text, walk

from .removal import remove

MAX_OPERATIONS = 1_000_000
"""How many operations a module may grow to."""


def inline_calls(module: ModuleOp) -> bool:
    """Inline every call in the module. Gives whether there was anything to do."""
    functions = [op for op in module.body.block.ops if isinstance(op, tt.FuncOp)]
    kernels = [f for f in functions if f.is_public and f.body.blocks]
    calls = {f: find(f, tt.CallOp) for f in functions}
    if not any(calls.values()):
        if len(kernels) in (0, len(functions)):
            return False
    else:
        _Inliner(functions, calls).run(kernels or functions[:1])
    for f in functions:
        if f not in kernels and kernels:
            remove(f)
    return True


class _Inliner:
    """The functions of a module, and which are done."""

    def __init__(self, functions: list[tt.FuncOp], calls: dict[tt.FuncOp, list[tt.CallOp]]):
        self.by_name = {f.sym_name.data: f for f in functions}
        self.calls = calls
        self.done: set[tt.FuncOp] = set()
        self.size: dict[tt.FuncOp, int] = {}

    def run(self, kernels: list[tt.FuncOp]) -> None:
        """Make the given functions free of calls: those that they call first."""
        for kernel in kernels:
            stack = [kernel]
            while stack:
                f = stack[-1]
                waiting = [g for g in map(self._callee, self.calls[f]) if g not in self.done]
                if f in self.done or not waiting:
                    stack.pop()
                    if f not in self.done:
                        self._inline(f)
                    continue
                callee = waiting[0]
                if callee in stack:
                    names = " -> ".join(f"@{g.sym_name.data}" for g in [*stack[stack.index(callee) :], callee])
                    raise CompilationError(f"recursion: {names}", span_of(callee))
                stack.append(callee)

    def _callee(self, call: tt.CallOp) -> tt.FuncOp:
        name = call.properties.get("callee")
        callee = self.by_name.get(name.root_reference.data) if isinstance(name, SymbolRefAttr) else None
        if callee is None:
            raise CompilationError(f"there is no function {name} to call", span_of(call))
        if not callee.body.blocks:
            raise CompilationError(f"function @{callee.sym_name.data} has no body", span_of(call))
        signature = callee.function_type
        if [v.type for v in call.operands] != list(signature.inputs.data) or [v.type for v in call.results] != list(
            signature.outputs.data
        ):
            raise CompilationError(
                f"the call does not fit @{callee.sym_name.data}: {type_text(signature)}", span_of(call)
            )
        return callee

    def _inline(self, f: tt.FuncOp) -> None:
        size = sum(1 for _ in walk(f))
        for call in self.calls[f]:
            callee = self._callee(call)
            size += self.size[callee]
            if size > MAX_OPERATIONS:
                raise CompilationError(
                    f"@{f.sym_name.data} has more than {MAX_OPERATIONS} operations once its calls are inlined",
                    span_of(f),
                )
            _copy_body(call, callee)
        self.size[f] = size
        self.done.add(f)


def _copy_body(call: tt.CallOp, callee: tt.FuncOp) -> None:
    block = call.parent
    if block is None:
        return
    mapped: dict[SSAValue, SSAValue] = dict(zip(callee.entry.args, call.operands, strict=True))
    locations: dict[int, Attribute] = {}
    results: list[SSAValue] = []
    for op in callee.entry.ops:
        if isinstance(op, tt.ReturnOp):
            results = [mapped.get(v, v) for v in op.operands]
            break
        copy = op.clone(mapped)
        _relocate(copy, call.location, locations)
        block.insert_op_before(copy, call)
    for old, new in zip(call.results, results, strict=True):
        old.replace_all_uses_with(new)
    remove(call)


def _relocate(op: Operation, caller: Attribute, relocated: dict[int, Attribute]) -> None:
    for inner in walk(op):
        location = relocated.get(id(inner.location))
        if location is None:
            location = relocated[id(inner.location)] = call_site_loc(inner.location, caller)
        inner.location = location  # type: ignore[assignment]

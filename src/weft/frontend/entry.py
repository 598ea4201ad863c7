"""From a kernel and the types of its arguments to a module of tile IR.

    module = ast_to_ttir(
        kernel,
        signature={"x": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 128},
        attributes={(0,): [["tt.divisibility", 16]]},
    )

The module holds one `tt.func`: every function that the kernel calls is traced in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from weft.base import CompilationError, CompileOptions, Span
from weft.ir import Builder, attrs, file_loc, function_type, hint_of, name_loc, tt
from weft.language import core, semantic
from weft.language.callable import JITCallable
from weft.language.signatures import str_to_ty

from . import bindings, branches, expressions, loops, statements
from .chains import cut_chains
from .failures import diagnose
from .frame import Frame, Trace
from .values import as_tuple

Path = tuple[int, ...]

# The files whose tables say what each kind of syntax means.
SYNTAX = (expressions, bindings, statements, branches, loops)


def _by_path(fn: JITCallable, values: Mapping[Any, Any]) -> dict[Path, Any]:
    """Constants (or attributes) by the path of their parameter, given by path, position or name."""
    paths: dict[Path, Any] = {}
    for key, value in values.items():
        if isinstance(key, str):
            key = (fn.arg_names.index(key),)
        elif isinstance(key, int):
            key = (key,)
        paths[tuple(key)] = value
    return paths


class _Parameters:
    """The parameters of the kernel as values of the language, over the block arguments of its function."""

    def __init__(self, fn: JITCallable, signature: Mapping[str, Any], constants: dict[Path, Any]) -> None:
        self.fn = fn
        self.constants = constants
        self.types = [self._type(signature.get(name, "constexpr"), (i,)) for i, name in enumerate(fn.arg_names)]
        self.ir_types: list[Attribute] = []
        self.names: list[str] = []
        self.first: dict[Path, int] = {}
        """The position of the first block argument of each parameter that has any."""
        for position, name in enumerate(fn.arg_names):
            self._place((position,), self.types[position], name)

    def _type(self, text: Any, path: Path) -> Any:
        """The type that a signature gives a parameter; None for one known at compile time."""
        if path in self.constants or text in ("constexpr", None):
            return None
        if isinstance(text, (tuple, list)):
            return [self._type(item, (*path, i)) for i, item in enumerate(text)], getattr(text, "_fields", None)
        return str_to_ty(text, None)

    def _place(self, path: Path, kind: Any, name: str) -> None:
        if kind is None:
            return
        if isinstance(kind, tuple):
            for i, item in enumerate(kind[0]):
                self._place((*path, i), item, f"{name}_{i}")
            return
        self.first[path] = len(self.ir_types)
        kind._flatten_ir_types(None, self.ir_types)
        count = len(self.ir_types) - self.first[path]
        self.names += [name] * count  # as Triton: the shape and strides of a descriptor have its name

    def scope(self, arguments: Sequence[SSAValue]) -> dict[str, Any]:
        """The variables that the kernel begins with."""
        return {name: self._value((i,), self.types[i], list(arguments)) for i, name in enumerate(self.fn.arg_names)}

    def _value(self, path: Path, kind: Any, arguments: list[SSAValue]) -> Any:
        if kind is None:
            value = self.constants.get(path)
            if isinstance(value, core.base_value):
                return value
            return as_tuple(value) if isinstance(value, tuple) else core.constexpr(value)
        if isinstance(kind, tuple):
            kinds, fields = kind
            items = [self._value((*path, i), item, arguments) for i, item in enumerate(kinds)]
            return core.tuple(items, core.tuple_type([v.type for v in items], fields) if fields else None)
        return kind._unflatten_ir(arguments, self.first[path])[0]


def _argument_attributes(parameters: _Parameters, attributes_of: dict[Path, Any]) -> ArrayAttr[DictionaryAttr]:
    """What specialisation knows about the arguments, `{tt.divisibility = 16 : i32}`."""
    dictionaries: list[dict[str, Attribute]] = [{} for _ in parameters.ir_types]
    for path, pairs in attributes_of.items():
        if path in parameters.first:
            for name, value in pairs:
                dictionaries[parameters.first[path]][name] = attrs.i32_attr(int(value))
    return ArrayAttr([DictionaryAttr(d) if d else attrs.empty_dict() for d in dictionaries])


def _check(fn: JITCallable, signature: Mapping[str, Any]) -> None:
    """Refuse a kernel whose declaration contradicts itself."""
    unknown = [name for name in signature if name not in fn.arg_names]
    if unknown:
        raise CompilationError(f"the signature names `{unknown[0]}`, which is no parameter of `{fn.__name__}`")
    for parameter in fn.params:
        if parameter.is_constexpr and (parameter.do_not_specialize or parameter.do_not_specialize_on_alignment):
            definition: Any = fn.parse().body[0]
            line, start = definition.lineno, definition.col_offset + len("def ")
            raise CompilationError(
                f"{parameter.name} marked as constexpr and listed in "
                "do_not_specialize/do_not_specialize_on_alignment. "
                "Remove constexpr designation to skip specialization.",
                Span(fn.file_name, line, start, line, start + len(fn.__name__)),
                source_line=fn.source_line(line),
            )


def ast_to_ttir(
    fn: JITCallable,
    signature: Mapping[str, Any],
    constexprs: Mapping[Any, Any] | None = None,
    attributes: Mapping[Any, Any] | None = None,
    options: CompileOptions | None = None,
    target: Any = None,
    *,
    name: str | None = None,
) -> ModuleOp:
    """Trace a kernel: its tile IR for arguments of these types.

    `signature` maps parameters to types ("*fp32", "i32", "constexpr", tuples of such), `constexprs` and `attributes`
    map paths, `(position,)` or `(position, index in a tuple)`, to values and to lists of `[name, value]`.
    """
    options = options if options is not None else CompileOptions()
    definition: Any = fn.parse().body[0]
    location = file_loc(fn.file_name, definition.lineno, definition.col_offset)
    parameters = _Parameters(fn, signature, _by_path(fn, constexprs or {}))
    entry = Block(arg_types=parameters.ir_types)
    for argument, hint in zip(entry.args, parameters.names, strict=True):
        argument.location = name_loc(hint, location)
        argument.name_hint = hint_of(hint)
    builder = Builder.at_end(entry, location)
    meaning = (fn.semantic or semantic.TritonSemantic)(builder, options, target)
    trace = Trace(builder, meaning, options, target)
    frame = Frame(trace, fn, parameters.scope(entry.args), None)
    trace.active.append(frame)
    try:
        _check(fn, signature)
        frame.trace_body()
        empty = isinstance(frame.ret_type, core.tuple_type) and not frame.ret_type.types
        if not (frame.returns_nothing or empty):
            hint = "store the result with tl.store"
            raise frame.error("a kernel cannot return a value", frame.returned_at, hint=hint)
    except Exception as error:
        failure = diagnose(frame, error)
        if failure is error:
            raise
        raise failure from error
    frame.at(definition)
    builder.create(tt.ReturnOp)
    cut_chains(entry)
    builder.block = None
    function = tt.FuncOp.create(
        properties={
            "sym_name": StringAttr(_symbol(name or fn.__name__)),
            "function_type": function_type(tuple(parameters.ir_types), ()),
            "sym_visibility": StringAttr("public"),
            "arg_attrs": _argument_attributes(parameters, _by_path(fn, attributes or {})),
        },
        attributes={"noinline": attrs.bool_attr(False)},
        regions=[Region(entry)],
        location=location,
    )
    module = ModuleOp([function])
    module.location = location
    meaning.finish(module)
    return module


def _symbol(name: str) -> str:
    """A name as a symbol that every stage accepts."""
    last = name.rpartition(".")[2]
    return last if last.isidentifier() and last.isascii() else re.sub(r"\W", "_", last, flags=re.ASCII)

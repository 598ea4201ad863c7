"""What can be compiled: a Python kernel with the types of its arguments, or tile IR as text.

ASTSource(kernel, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128}, {(0,): [["tt.divisibility", 16]]})
IRSource("module { tt.func public @kernel(...) ... }")
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from weft import frontend, ir
from weft.base import CompilationError, CompileOptions, Span, load, shortened
from weft.language.callable import JITCallable
from weft.language.keys import Keys, kind_of_module
from weft.language.signatures import str_to_ty

from .target import GPUTarget

Path = tuple[int, ...]


class Source(Protocol):
    """Something that can become tile IR."""

    name: str
    ext: str

    def hash(self) -> str:
        """A digest of everything that the tile IR depends on, options and target apart."""
        ...

    def places(self) -> list[tuple[str, int]]:
        """File and line of its functions, in an order that their text alone decides."""
        ...

    def text(self) -> str:
        """The source as the user wrote it."""
        ...

    def make_ir(self, options: CompileOptions, target: GPUTarget) -> Any:
        """The tile IR, an xDSL module."""
        ...


class Specialization(NamedTuple):
    """What a function given as `jit(repr=...)` may make a kernel's name of."""

    constants: dict[str, Any]
    signature: dict[str, Any]


class _KeysOnDisk(Keys):
    """Keys of constants for other processes too: what a module gives them is found by tracing."""

    def module(self, value: ModuleType) -> Any:
        key = super().module(value)[:2]
        if kind_of_module(value.__name__) == "user":
            self.unfollowed[f"module {value.__name__}"] = None
        return key


class ASTSource:
    """A kernel, `signature` the types of its parameters by name, `constexprs` values by name or by path.

    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 4)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> weft.ASTSource(double, {"x": "*fp32"}).name
    'double'
    """

    ext = "ttir"

    @shortened
    def __init__(
        self,
        fn: Any,
        signature: Mapping[str, Any],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[Path, list[list[Any]]] | None = None,
        constants: Mapping[Any, Any] | None = None,
    ) -> None:
        if not isinstance(fn, JITCallable):
            raise CompilationError(f"only functions decorated with jit can be compiled, got {fn!r}")
        self.fn = fn
        if fn.semantic is not None:  # a Gluon kernel
            self.ext = "ttgir"
        self.name: str = fn.__name__
        unknown = [name for name in signature if name not in fn.arg_names]
        if unknown:
            wrong = f"the signature names {unknown}, but the parameters of {self.name} are {fn.arg_names}"
            raise _at(fn, wrong, hint="rename them, or leave them out")
        values = constexprs if constexprs is not None else constants if constants is not None else {}
        self.constants: dict[Path, Any] = {}
        for key, value in values.items():
            if isinstance(key, str):
                if key not in fn.arg_names:
                    wrong = f"{self.name} has no parameter {key!r}; it has {fn.arg_names}"
                    raise _at(fn, wrong, hint="constants are given by the names or the numbers of parameters")
                key = (fn.arg_names.index(key),)
            elif isinstance(key, int):
                key = (key,)
            self.constants[key] = value
        self.signature: dict[str, Any] = {}
        for i, name in enumerate(fn.arg_names):
            if name in signature:
                self.signature[name] = signature[name]
            elif (i,) in self.constants:
                self.signature[name] = "constexpr"
            else:
                raise _at(fn, f"the signature says nothing about parameter {name!r} of {self.name}", name, hint=_TYPES)
        for name, kind in self.signature.items():
            try:
                str_to_ty(kind, None)
            except (ValueError, TypeError, AttributeError) as error:
                reason = error if isinstance(error, ValueError) else f"expected the name of a type, got {kind!r}"
                raise _at(fn, f"the type of parameter `{name}` of {self.name}: {reason}", name, hint=_TYPES) from None
        self.attrs: dict[Path, list[list[Any]]] = dict(attrs or {})
        self.symbol = self._symbol()
        self._traced: list[Any] | None = None
        """The tile IR that was traced for the key, until it is taken, and its text."""

    def _symbol(self) -> str | None:
        """The name of the compiled kernel where its author has said how to make one."""
        named_by = getattr(self.fn, "repr", None)
        if getattr(self.fn, "_repr", None) is None or named_by is None:
            return None
        named = {self.fn.arg_names[path[0]]: value for path, value in self.constants.items() if len(path) == 1}
        return str(named_by(Specialization(named, self.signature)))

    def hash(self) -> str:
        """A digest of the kernel, all it calls and captures, and what it is specialised for."""
        parts = [
            self.fn.current_key(),
            repr(self._keys()[0]),
            *([] if self.symbol is None else [f"name={self.symbol}"]),
            *([] if self.fn.semantic is None else ["gluon"]),  # the same text may be a kernel of either language
            *([] if self._traced is None else [self._traced[1]]),
        ]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def places(self) -> list[tuple[str, int]]:
        """File and line of the kernel and of all jit functions that it calls or is given."""
        self.fn.current_key()  # finds out
        return list(dict.fromkeys((*self.fn.places, *self._keys()[1].places)))

    def _keys(self) -> tuple[Any, Keys]:
        """The key of all that the kernel is specialised for, and what made it."""
        keys = _KeysOnDisk()
        facts = keys.of(sorted(self.attrs.items())), keys.of(list(self.signature.items()))
        constants = [(path, keys.of(value)) for path, value in sorted(self.constants.items())]
        return (facts, constants), keys

    @property
    def unfollowed(self) -> list[str]:
        """What functions that run while the kernel is compiled read, and what no key covers: files, say, or clocks."""
        self.fn.current_key()  # finds out
        return sorted({*self.fn.unfollowed, *self._keys()[1].unfollowed})

    def trace(self, options: CompileOptions, target: GPUTarget) -> None:
        """Trace the kernel now, so that `hash` covers what such functions gave; `make_ir` hands out what was made."""
        module = self.make_ir(options, target)
        self._traced = [(options, target, module), ir.print_module(module)]

    def text(self) -> str:
        """The kernel's own definition."""
        return self.fn.src

    def make_ir(self, options: CompileOptions, target: GPUTarget) -> Any:
        """Trace the kernel."""
        if self._traced is not None and self._traced[0] is not None:
            made_for, self._traced[0] = self._traced[0], None  # passes change it
            if made_for[:2] == (options, target):
                return made_for[2]
        module = frontend.ast_to_ttir(
            self.fn, self.signature, self.constants, self.attrs, options, target, name=self.symbol
        )
        self.fn.settle()
        return module


def trace_unfollowed(src: Source, options: CompileOptions, target: GPUTarget) -> None:
    """Trace a kernel whose key needs it, before its key is made: see `weft.language.reading`."""
    if isinstance(src, ASTSource) and src.unfollowed:
        src.trace(options, target)


_TYPES = "'*fp32' is an array of float32, 'i32' a number, 'constexpr' a constant, which constexprs={name: value} gives"


def _at(fn: JITCallable, message: str, parameter: str | None = None, *, hint: str) -> CompilationError:
    """An error at the definition of a kernel, or at one of its parameters."""
    definition: Any = fn.parse().body[0]
    start = definition.col_offset + len("def ")
    place = Span(fn.file_name, definition.lineno, start, definition.lineno, start + len(definition.name))
    for argument in (*definition.args.args, definition.args.vararg):
        if argument is not None and argument.arg == parameter:
            first, last = argument.col_offset, argument.col_offset + len(argument.arg)
            place = Span(fn.file_name, argument.lineno, first, argument.lineno, last)
    return CompilationError(message, place, source_line=fn.source_line(place.line), hint=hint)


class IRSource:
    """Tile IR as text, or layout IR; `path` is what messages call it."""

    ext = "ttir"

    def __init__(self, text: str, name: str | None = None, *, path: str = "<ttir>") -> None:
        self.path, self.src = path, text
        match = re.search(r"tt\.func\s+(?:public\s+)?@\"?([\w.$]+)", text)
        self.name: str = name or (match[1] if match else "kernel")
        self.fn = None

    def hash(self) -> str:
        """A digest of the text, and of the name that the kernel has."""
        return hashlib.sha256(repr((self.src, self.name)).encode()).hexdigest()

    def places(self) -> list[tuple[str, int]]:
        """What messages call the text."""
        return [(self.path, 1)]

    def text(self) -> str:
        """The tile IR as it was given."""
        return self.src

    def make_ir(self, options: CompileOptions, target: GPUTarget) -> Any:
        """Read and check it."""
        if "ttg.num-warps" in self.src:  # its operations are in no table before it is loaded
            load("weft.ir.gpu")
        module = ir.parse_module(self.src, self.path)
        try:
            ir.verify(module, *(["layout"] if "ttg.num-warps" in module.attributes else []))
        except CompilationError as error:
            raise error.with_span(Span(self.path, 1, 0)) from None
        return module


class OverriddenSource:
    """A kernel whose tile IR is given: the option `ir_override`, for trying changes to it."""

    ext = "ttir"

    def __init__(self, kernel: Source, instead: IRSource) -> None:
        self.kernel, self.instead = kernel, instead
        self.fn, self.name = getattr(kernel, "fn", None), kernel.name
        for fact in ("signature", "constants", "attrs"):
            if hasattr(kernel, fact):
                setattr(self, fact, getattr(kernel, fact))

    def hash(self) -> str:
        """A digest of both."""
        return hashlib.sha256((self.kernel.hash() + self.instead.hash()).encode()).hexdigest()

    def places(self) -> list[tuple[str, int]]:
        """What messages call the text; the kernel's own is not compiled."""
        return self.instead.places()

    def text(self) -> str:
        """The kernel's own definition."""
        return self.kernel.text()

    def make_ir(self, options: CompileOptions, target: GPUTarget) -> Any:
        """Read the text; what the kernel is called with has to fit it."""
        wanted = self.kernel.make_ir(options, target)
        module = self.instead.make_ir(options, target)
        if _inputs(module) != _inputs(wanted):
            raise CompilationError(
                f"{self.instead.path} takes ({', '.join(_inputs(module))}), "
                f"the kernel {self.name} that it stands for takes ({', '.join(_inputs(wanted))})"
            )
        return module


def _inputs(module: Any) -> list[str]:
    """The types of a kernel's parameters."""
    for op in module.body.block.ops:
        if isinstance(op, ir.tt.FuncOp):
            return [str(kind) for kind in op.function_type.inputs]
    return []

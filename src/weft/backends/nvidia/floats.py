"""Floats, register by register: arithmetic, comparisons, mathematical functions. Small ones are computed as f32."""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.llvm import vecmath
from weft.ir.lane import LaneOp

from .approximations import APPROXIMATIONS
from .conversions import SMALL_FLOATS, convert
from .elementwise import MANGLED, SCALARS, named_predicate, scalars
from .emitter import LLVM, Emitter, scalar

__all__: list[str] = []

FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


def _computed(elem: str) -> str:
    """The LLVM type that an element type is computed in."""
    return "float" if elem in SMALL_FLOATS else LLVM[elem]


def widened(e: Emitter, elem: str, name: str) -> str:
    """A register ready for arithmetic: fp8 as f32."""
    return convert(e, elem, "f32", name) if elem in SMALL_FLOATS else name


def narrowed(e: Emitter, elem: str, name: str) -> str:
    """The inverse of `widened`, rounding to nearest even."""
    return convert(e, "f32", elem, name) if elem in SMALL_FLOATS else name


def _float(name: str, write: Callable[[Emitter, LaneOp, str, list[str]], str]) -> None:
    """An operation computed in the type of its result; `write` takes the LLVM type."""

    def emit(e: Emitter, op: LaneOp, a: list[str]) -> str:
        elem = op.results[0].elem
        return narrowed(e, elem, write(e, op, _computed(elem), [widened(e, elem, x) for x in a]))

    SCALARS[name] = emit


def _arithmetic(llvm: str) -> Callable[[Emitter, LaneOp, str, list[str]], str]:
    return lambda e, op, type, a: e.ins(f"{llvm} {e.fast}{type} {a[0]}, {a[1]}")


def _called(llvm: str) -> Callable[[Emitter, LaneOp, str, list[str]], str]:
    return lambda e, op, type, a: e.ins(e.call(f"llvm.{llvm}.{MANGLED[type]}", type, [(type, x) for x in a]))


for _name, _llvm in {"arith.addf": "fadd", "arith.subf": "fsub", "arith.mulf": "fmul"}.items():
    _float(_name, _arithmetic(_llvm))
for _name, _llvm in {
    "math.fma": "fma",
    "math.absf": "fabs",
    "math.copysign": "copysign",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "math.trunc": "trunc",
    "math.round": "round",
    "math.roundeven": "rint",
}.items():
    _float(_name, _called(_llvm))
_float("arith.negf", lambda e, op, type, a: e.ins(f"fneg {type} {a[0]}"))


@scalars("arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf")
def _extremum(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """Of a NaN and a number maxnumf gives the number, maximumf the NaN."""
    elem, name = op.results[0].elem, op.name.removeprefix("arith.").removesuffix("f")
    type = _computed(elem)
    x, y = (widened(e, elem, v) for v in a)
    if type == "double" and name in ("maximum", "minimum"):
        best = e.ins(e.call(f"llvm.{name[:3]}num.f64", type, [(type, x), (type, y)]))
        either = e.ins(f"fcmp uno double {x}, {y}")
        return e.ins(f"select i1 {either}, double 0x7FF8000000000000, double {best}")
    return narrowed(e, elem, e.ins(e.call(f"llvm.{name}.{MANGLED[type]}", type, [(type, x), (type, y)])))


@scalars("arith.divf")
def _quotient(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """f32 to two units in the last place, as Triton does it; `precise` is rounded once; halves go through f32."""
    elem = op.results[0].elem
    if elem == "f64" or (elem == "f32" and op.attrs.get("precise")):
        return e.ins(f"fdiv {LLVM[elem]} {a[0]}, {a[1]}")
    x, y = (convert(e, elem, "f32", v) for v in a)
    if elem == "f32":
        return e.ins(e.call("llvm.nvvm.div.full", "float", [("float", x), ("float", y)]))
    return convert(e, "f32", elem, e.ins(f"fdiv float {x}, {y}"))


@scalars("arith.remf")
def _remainder(e: Emitter, op: LaneOp, a: list[str]) -> str:
    return through_f32(e, op.results[0].elem, a, lambda elem, x: library(e, "fmod", elem, x))


@scalars("arith.cmpf")
def _compare_floats(e: Emitter, op: LaneOp, a: list[str]) -> str:
    predicate, elem = named_predicate(op.attrs["predicate"], FLOAT_PREDICATES), op.operands[0].elem
    x, y = (widened(e, elem, v) for v in a)
    return e.ins(f"fcmp {predicate} {_computed(elem)} {x}, {y}")


# -- functions --------------------------------------------------------------------------------------------------------


def library(e: Emitter, name: str, elem: str, a: list[str]) -> str:
    """A function of the library of mathematical functions, on f32 or f64."""
    name = APPROXIMATIONS.get(name, name) if elem == "f32" else name
    return vecmath.call(e.f, name, [e.typed(elem, x) for x in a]).name


def through_f32(e: Emitter, elem: str, a: list[str], compute: Callable[[str, list[str]], str]) -> str:
    """Smaller floats are computed in f32 and rounded."""
    if elem in ("f32", "f64"):
        return compute(elem, a)
    return convert(e, "f32", elem, compute("f32", [convert(e, elem, "f32", x) for x in a]))


def _approximate(e: Emitter, name: str, x: str) -> str:
    return e.ins(e.call(f"llvm.nvvm.{name}", "float", [("float", x)]))


LOG2_E = "0x3FF7154760000000"  # f32: 1.4426950216293335


def _exp(e: Emitter, x: str) -> str:
    return _approximate(e, "ex2.approx.f", e.ins(f"fmul {e.fast}float {x}, {LOG2_E}"))


FAST: dict[str, Callable[[Emitter, str], str]] = {
    "exp": _exp,
    "exp2": lambda e, x: _approximate(e, "ex2.approx.ftz.f", x),
    "sqrt": lambda e, x: _approximate(e, "sqrt.approx.ftz.f", x),
    "rsqrt": lambda e, x: _approximate(e, "rsqrt.approx.ftz.f", x),
}
"""Functions of f32 that are an instruction; the others are in the library."""
OTHER_NAMES = {"powf": "pow", "ipowi": "pow"}


@scalars("math.*")
def _function(e: Emitter, op: LaneOp, a: list[str]) -> str:
    name = op.name.removeprefix("math.")
    name = OTHER_NAMES.get(name, name)

    def compute(elem: str, x: list[str]) -> str:
        if elem == "f32" and name in FAST and not op.attrs.get("precise"):
            return FAST[name](e, x[0])
        if name == "sqrt":
            type = LLVM[elem]
            return e.ins(e.call(f"llvm.sqrt.{elem}", type, [(type, x[0])]))
        if not vecmath.has(name, LLVM[elem]):
            raise e.fail(op, f"`{op.name}` of {elem}")
        return library(e, name, elem, x)

    return through_f32(e, op.results[0].elem, a, compute)


@scalars("libdevice.*")
def _libdevice(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """By CUDA's symbol or by the generic name."""
    name = op.name.removeprefix("libdevice.")
    name = vecmath.symbol_to_name.get(name, (name, ""))[0]
    elem = next((v.elem for v in op.operands if v.elem[0] == "f"), op.operands[0].elem)
    if not vecmath.has(name, LLVM[elem]):
        raise e.fail(op, f"`{op.name}` of {elem}")
    name = APPROXIMATIONS.get(name, name) if elem == "f32" else name
    found = vecmath.call(e.f, name, [e.typed(v.elem, x) for v, x in zip(op.operands, a, strict=True)])
    wanted = scalar(LLVM[op.results[0].elem])
    if found.type != wanted and not wanted.is_float and not found.type.is_float:
        return e.f.cast("trunc" if wanted.bits < found.type.bits else "zext", found, wanted).name
    return found.name

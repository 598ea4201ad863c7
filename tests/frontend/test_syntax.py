"""What each kind of statement and expression becomes."""

from __future__ import annotations

import collections
import math
from typing import NamedTuple

import pytest

from frontend.tracing import checks, filecheck, ir_text
from weft import language as tl
from weft.base import CompilationError, CompileOptions, CompilerCrash
from weft.language.callable import constexpr_function, jit

N = tl.constexpr(7)
FIVE = tl.constexpr(5)
PLAIN = 11
SHAPE = tl.constexpr((4, 8))
Pair = collections.namedtuple("Pair", ["first", "second"])


class Point(NamedTuple):
    x: int
    y: int


# -- values ------------------------------------------------------------------------------------------------------------


@checks({"x": "*fp32"})
def test_constants_fold(x):
    # CHECK: tt.func public @test_constants_fold(%x: !tt.ptr<f32>) attributes {noinline = false} {
    # CHECK-NEXT: [[C:%.*]] = arith.constant 7.400000e+01 : f32
    # CHECK-NEXT: tt.store %x, [[C]] : !tt.ptr<f32>
    # CHECK-NEXT: tt.return
    tl.store(x, (N * 2 + FIVE**2 - 3) * 2 + -(-9 // 4) - (1 if N == 7 else 0))


@checks({"x": "*fp32"})
def test_assigned_numbers_exist_at_run_time(x):
    # CHECK: %n = arith.constant 4 : i32
    # CHECK: arith.addi %n, %n
    n = 4
    tl.store(x, n + n)


@checks({"x": "*i32", "n": "i32"})
def test_constexpr_annotations_keep_values_known(x, n):
    # CHECK-NOT: arith.constant 3
    # CHECK: tt.make_range {end = 16 : i32, start = 0 : i32}
    size: tl.constexpr = 16
    other: "tl.constexpr" = size // 4  # noqa: UP037
    tl.static_assert(other == 4)
    ignored: int = n  # other annotations mean nothing
    tl.store(x + tl.arange(0, size), ignored)


@checks({"x": "*fp32", "n": "i32"})
def test_chained_and_tuple_assignment(x, n):
    # CHECK: %a = arith.addi %n
    # CHECK: %b = arith.subi %n
    # CHECK: %c = arith.muli %b, %a
    # CHECK: arith.addi %c, %c
    (a, b) = n + 1, n - 1
    a, b = b, a
    c = d = a * b
    tl.store(x, c + d)


@checks({"x": "*i32", "n": "i32"})
def test_augmented_assignment(x, n):
    # CHECK: %n_0 = arith.addi %n
    # CHECK: %n_1 = arith.shli %n_0
    # CHECK: tt.store %x, %n_1
    n += 3
    n <<= 2
    tl.store(x, n)


@checks({"x": "*i32", "n": "i32"})
def test_operators(x, n):
    # CHECK: arith.subi
    # CHECK: arith.divsi
    # CHECK: arith.remsi
    # CHECK: arith.xori
    # CHECK: arith.cmpi slt, {{%.*}}, %n
    # CHECK: arith.cmpi sge
    # CHECK: arith.andi
    # CHECK: arith.shrsi
    a = -n
    b = 100 // n % 7
    c = ~b
    d = 3 < n
    e = (n >= 5) & d
    tl.store(x, a + b + c + e + (n >> 1))


@checks({"x": "*fp32", "n": "i32"})
def test_known_conditions_choose(x, n):
    # CHECK-NOT: scf.if
    # CHECK: [[C:%.*]] = arith.constant 2.000000e+00
    # CHECK-NEXT: tt.store %x, [[C]]
    if N > 3 and not FIVE == 4:
        y: tl.constexpr = 2.0
    elif undefined_and_never_seen:  # noqa: F821
        pass
    else:
        y: tl.constexpr = 1.0
    tl.store(x, y)


@checks({"x": "*fp32"}, flag=None)
def test_is_and_none(x, flag):
    # CHECK: arith.constant 1.000000e+00
    # CHECK-NOT: arith.constant 2.000000e+00
    if flag is None:
        tl.store(x, 1.0)
    if flag is not None:
        tl.store(x, 2.0)


@checks({"x": "*fp32", "n": "i32"})
def test_and_or_on_scalars(x, n):
    # CHECK: [[A:%.*]] = arith.cmpi sgt, %n
    # CHECK: [[B:%.*]] = arith.cmpi slt, %n
    # CHECK: [[C:%.*]] = arith.andi [[A]], [[B]] : i1
    # CHECK: scf.if [[C]]
    if n > 3 and N == 7 and n < 9:
        tl.store(x, 1.0)


@checks({"x": "*fp32", "n": "i32"})
def test_known_operands_decide_and_or(x, n):
    # CHECK-NOT: scf.if
    # CHECK: tt.store
    if N == 7 or undefined_and_never_seen:  # noqa: F821
        tl.store(x, 1.0)
    if N == 8 and n > 3:
        tl.store(x, 2.0)


@checks({"x": "*fp32", "n": "i32"})
def test_fstrings_fold(x, n):
    # CHECK: tt.store
    name: tl.constexpr = f"{N:03d}-{FIVE!r}-{tl.float16}"
    tl.static_assert(name == "007-5-fp16")
    tl.store(x, 1.0)


@checks({"x": "*fp32", "n": "i32"})
def test_conditional_expression(x, n):
    # CHECK: [[C:%.*]] = arith.cmpi sgt, %n
    # CHECK: [[R:%.*]] = scf.if [[C]] -> (i32) {
    # CHECK:   scf.yield
    # CHECK: } else {
    # CHECK:   scf.yield
    # CHECK: }
    # CHECK: arith.sitofp [[R]]
    tl.store(x, n * 2 if n > 3 else 7)


# -- tuples ------------------------------------------------------------------------------------------------------------


@checks({"x": "*i32", "n": "i32"})
def test_tuples(x, n):
    # CHECK: [[A:%.*]] = arith.addi %n
    # CHECK: arith.muli [[A]]
    t = (n + 1, 2, *(n, n))
    tl.static_assert(len(t) == 4)
    tl.static_assert(len(t[1:]) == 3)
    u = [v * 2 for v in t if True]
    a, (b, c) = u[0], (u[-1], u[N - 5])
    tl.store(x, a + b + c)


@checks({"x": "*i32", "n": "i32"})
def test_named_tuples(x, n):
    # CHECK: %[[S:.*]] = arith.addi %n
    p = Pair(n, n + 1)
    q = Point(x=p.first, y=p.second)
    tl.store(x, q.x * q.y + p[0])


@checks({"x": ("*i32", "i32"), "y": Point("i32", "constexpr")})
def test_tuple_parameters(x, y):
    # CHECK: tt.func public @test_tuple_parameters(%x: !tt.ptr<i32>, [[N:%.*]]: i32, [[Y:%.*]]: i32)
    # CHECK: arith.addi [[N]], [[Y]]
    ptr, n = x
    if y.y is None:
        tl.store(ptr, n + y.x)


@checks({"x": "*i32"})
def test_known_sequences(x):
    # CHECK: tt.make_range {end = 8 : i32, start = 0 : i32}
    tl.static_assert(SHAPE[0] == 4)
    rows, columns = SHAPE
    tl.store(x + tl.arange(0, SHAPE[1]), rows + columns)


@checks({"x": "*i32", "n": "i32"})
def test_starred_arguments_and_keywords(x, n):
    # CHECK: [[V:%.*]] = arith.addi
    # CHECK: tt.store %x, [[V]]
    args = (x, n + 1)
    tl.store(*args, mask=None)


# -- calls -------------------------------------------------------------------------------------------------------------


@jit
def scale(v, by=2, *, plus: tl.constexpr = 0):
    return v * by + plus


@jit
def both(a, b):
    return a + b, a - b


@jit
def nothing(x):
    tl.store(x, 0)


@jit
def power(v, n: tl.constexpr):
    if n == 0:
        return v * 0 + 1
    return v * power(v, n - 1)


@jit
def early(v):
    if v > 3:
        return v + 1
    return v * 2


@constexpr_function
def next_power(n):
    return 1 << (n - 1).bit_length()


@constexpr_function
def sizes(n):
    return n, n * 2


@checks({"x": "*i32", "n": "i32"})
def test_calls_are_traced_in_place(x, n):
    # CHECK-NOT: tt.call
    # CHECK: [[C:%.*]] = arith.constant 2 : i32
    # CHECK: [[A:%.*]] = arith.muli %n, [[C]]
    # CHECK: arith.muli [[B:%.*]],
    # CHECK-NOT: tt.func
    nothing(x)
    a, b = both(scale(n), scale(n, plus=1, by=3))
    tl.store(x, a * b)


@checks({"x": "*i32", "n": "i32"})
def test_recursion_over_known_values(x, n):
    # CHECK-COUNT-4: arith.muli
    # CHECK-NOT: arith.muli
    tl.store(x, power(n, 3))


@checks({"x": "*i32", "n": "i32"})
def test_early_return_of_a_callee(x, n):
    # CHECK: [[R:%.*]] = scf.if {{.*}} -> (i32) {
    # CHECK:   arith.addi
    # CHECK:   scf.yield
    # CHECK: } else {
    # CHECK:   arith.muli
    # CHECK:   scf.yield
    # CHECK: }
    # CHECK: tt.store %x, [[R]]
    tl.store(x, early(n))


@checks({"x": "*i32"}, n=5)
def test_functions_at_compile_time(x, n):
    # CHECK: tt.make_range {end = 8 : i32, start = 0 : i32}
    # CHECK: tt.make_range {end = 16 : i32, start = 0 : i32}
    size: tl.constexpr = next_power(n)
    tl.store(x + tl.arange(0, size), 1)
    low, high = sizes(8)
    double: tl.constexpr = sizes(8)[1]
    tl.store(x + tl.arange(0, double), low + high)
    tl.static_assert(math.ceil(2.5) == 3)
    tl.static_assert(int(2.5) == 2 and float(2) == 2.0)
    tl.static_assert(max(n, 3) == 5 and min(n, 3) == 3)


@checks({"x": "*fp32", "n": "i32"})
def test_questions_about_values(x, n):
    # CHECK: tt.store
    tl.static_assert(isinstance(n, tl.tensor))
    tl.static_assert(hasattr(x, "dtype") and not hasattr(x, "nonsense"))
    tl.static_assert(getattr(x, "dtype").is_ptr())
    tl.static_assert(x.dtype.element_ty == tl.float32)
    tl.static_assert(n.dtype.primitive_bitwidth == 32)
    tl.store(x, 1.0)


@checks({"x": "*fp32", "n": "i32"})
def test_methods_and_indexing(x, n):
    # CHECK: tt.expand_dims {{.*}} {axis = 1 : i32}
    # CHECK: tt.expand_dims {{.*}} {axis = 0 : i32}
    # CHECK: tt.trans
    # CHECK: "tt.reduce"
    # CHECK: arith.addf
    # CHECK: tt.reduce.return
    i = tl.arange(0, 8)
    tile = i[:, None] * 8 + i[None, :]
    tl.store(x + i, tl.load(x + tile).T.sum(axis=0))


@jit
def take_larger(a, b):
    if a > b:
        return a
    return b


@checks({"x": "*fp32"})
def test_functions_of_a_reduction(x):
    # CHECK: "tt.reduce"
    # CHECK: ^bb0([[A:%.*]]: f32, [[B:%.*]]: f32):
    # CHECK: arith.cmpf ogt, [[A]], [[B]]
    # CHECK: [[R:%.*]] = scf.if
    # CHECK: tt.reduce.return [[R]]
    tl.store(x, tl.reduce(tl.load(x + tl.arange(0, 16)), 0, take_larger))


# -- options and globals -----------------------------------------------------------------------------------------------


def test_any_global_may_be_read_by_option() -> None:
    def kernel(x):
        tl.store(x, PLAIN)

    with pytest.raises(CompilationError, match="Cannot access global variable PLAIN from within @jit'ed function."):
        ir_text(kernel, {"x": "*i32"})
    text = ir_text(kernel, {"x": "*i32"}, options=CompileOptions(allow_non_constexpr_globals=True))
    filecheck(text, "CHECK: arith.constant 11 : i32")


def test_closures() -> None:
    def make(k):
        def kernel(x):
            tl.store(x, k)

        return kernel

    filecheck(ir_text(make(tl.constexpr(3)), {"x": "*i32"}), "CHECK: arith.constant 3 : i32")
    with pytest.raises(CompilationError, match="k is not defined for the kernel: it is a captured"):
        ir_text(make(3), {"x": "*i32"})


def test_assertions_are_checked_when_debugging() -> None:
    def kernel(x, n):
        assert n > 3, f"n is too small for {N}"
        tl.store(x, n)

    signature = {"x": "*i32", "n": "i32"}
    filecheck(ir_text(kernel, signature), "CHECK-NOT: tt.assert\nCHECK: tt.return")
    text = ir_text(kernel, signature, options=CompileOptions(debug=True, sanitize_overflow=False))
    filecheck(text, 'CHECK: tt.assert {{.*}}, "n is too small for 7" : i1')


def test_argument_attributes_and_names() -> None:
    def kernel(x, n, m: tl.constexpr):
        tl.store(x, n + m)

    text = ir_text(
        kernel,
        {"x": "*fp32", "n": "i32"},
        {(2,): 3},
        {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]},
    )
    filecheck(
        text,
        "CHECK: tt.func public @kernel(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, "
        "%n: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false}",
    )


# -- with --------------------------------------------------------------------------------------------------------------


class _Scope:
    """A context manager that takes the semantic, as builtins do."""

    __module__ = "weft.language.testing"
    entered: int = 0

    def __init__(self, value, _semantic=None):
        assert _semantic is not None
        self.value = value

    def __enter__(self):
        _Scope.entered += 1
        return self.value

    def __exit__(self, *ignored):
        _Scope.entered -= 1


def test_context_managers() -> None:
    def kernel(x, n):
        with _Scope(n + 1) as m, _Scope(2):
            tl.store(x, m)
        tl.store(x, n)

    filecheck(ir_text(kernel, {"x": "*i32", "n": "i32"}), "CHECK: [[M:%.*]] = arith.addi\nCHECK: tt.store %x, [[M]]")
    assert _Scope.entered == 0


def test_no_return_out_of_a_context_manager() -> None:
    def kernel(x, n):
        with _Scope(n):
            return

    with pytest.raises(CompilationError, match="Cannot have `return` statements inside `while` or `for`"):
        ir_text(kernel, {"x": "*i32", "n": "i32"})


def test_warnings_point_to_the_kernel() -> None:
    def kernel(x, n):
        v = tl.load(x + tl.arange(0, 1))
        if v > 3:
            tl.store(x, 1.0)

    with pytest.warns(UserWarning, match=r"a condition is a tensor of one element; use \(v > 3\).item\(\)") as caught:
        ir_text(kernel, {"x": "*fp32", "n": "i32"})
    assert caught[0].filename == __file__
    assert caught[0].lineno == kernel.__code__.co_firstlineno + 2


@pytest.mark.filterwarnings("always")
def test_warnings_of_builtins_point_to_the_kernel_too() -> None:
    def kernel(x):
        i = tl.arange(0, 16)
        v = tl.where(i & 1, 1, 2)
        v = tl.view(v, (16,))
        v = min(v, i)
        v = v << 40
        tl.store(x + i, v)

    with pytest.warns(UserWarning) as caught:
        ir_text(kernel, {"x": "*i32"})
    first = kernel.__code__.co_firstlineno
    assert [(w.filename, w.lineno - first) for w in caught] == [(__file__, n) for n in (2, 3, 4, 5)]


# -- faults of Weft ----------------------------------------------------------------------------------------------------


def test_a_fault_of_weft_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self, *args, **kwargs):
        return self.builder.cmpi("nonsense", None, None)

    def kernel(x, n):
        tl.store(x, n)

    monkeypatch.setattr(tl.semantic.TritonSemantic, "store", broken)
    with pytest.raises(CompilerCrash) as caught:
        ir_text(kernel, {"x": "*i32", "n": "i32"})
    error = caught.value
    assert error.stage == "the frontend"
    assert error.span is not None and error.span.line == kernel.__code__.co_firstlineno + 1
    assert "KeyError: 'nonsense'" in str(error)
    assert "tl.store(x, n)" in str(error)
    assert error.traceback is not None and "in broken" in error.traceback

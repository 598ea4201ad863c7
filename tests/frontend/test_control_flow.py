"""Branches, loops and early returns as structured control flow."""

# ruff: noqa: RET503

from __future__ import annotations

from typing import Any

import pytest

from frontend.tracing import checks, filecheck, ir_text
from weft import language as tl
from weft.base import CompilationError, CompileOptions
from weft.language.callable import jit

# -- if ----------------------------------------------------------------------------------------------------------------


@checks({"x": "*i32", "n": "i32"})
def test_if_else(x, n):
    # CHECK: [[C:%.*]] = arith.cmpi sgt, %n
    # CHECK: [[Y:%.*]] = scf.if [[C]] -> (i32) {
    # CHECK-NEXT:   [[TWO:%.*]] = arith.constant 2
    # CHECK-NEXT:   [[A:%.*]] = arith.muli %n, [[TWO]]
    # CHECK-NEXT:   scf.yield [[A]] : i32
    # CHECK-NEXT: } else {
    # CHECK-NEXT:   scf.yield %n : i32
    # CHECK-NEXT: }
    # CHECK-NEXT: tt.store %x, [[Y]]
    if n > 3:
        y = n * 2
    else:
        y = n
    tl.store(x, y)


@checks({"x": "*i32", "n": "i32"})
def test_if_without_else_and_results(x, n):
    # CHECK: scf.if {{%.*}} {
    # CHECK-NEXT:   tt.store
    # CHECK-NEXT: }
    # CHECK-NEXT: tt.return
    if n > 3:
        temporary = n
        tl.store(x, temporary)


@checks({"x": "*i32", "n": "i32"})
def test_only_what_changes_is_a_result(x, n):
    # CHECK: [[R:%.*]]:2 = scf.if {{%.*}} -> (i32, i32) {
    # CHECK: arith.addi [[R]]#0, [[R]]#1
    a = n + 1
    b = n + 2
    c = n + 3
    if n > 3:
        a = c
        c = b
        b = b
    elif n > 2:
        c = a
    tl.store(x, a + c + b)


@checks({"x": "*i32", "n": "i32"}, m=4)
def test_a_number_known_in_one_branch_becomes_a_tensor(x, n, m):
    # CHECK: [[R:%.*]] = scf.if {{%.*}} -> (i32) {
    # CHECK:   scf.yield %n
    # CHECK: } else {
    # CHECK:   [[M:%.*]] = arith.constant 4
    # CHECK:   scf.yield [[M]]
    # CHECK: tt.store %x, [[R]]
    if n > 3:
        m = n
    tl.store(x, m)


@checks({"x": "*i32", "n": "i1"})
def test_booleans_and_numbers_as_conditions(x, n):
    # CHECK: scf.if %n {
    # CHECK: [[L:%.*]] = tt.load %x
    # CHECK: [[C:%.*]] = arith.cmpi ne, [[L]]
    # CHECK: scf.if [[C]]
    if n:
        tl.store(x, 1)
    if tl.load(x):
        tl.store(x, 2)


@checks({"x": "*i32", "n": "i32"})
def test_tuples_through_branches(x, n):
    # CHECK: [[R:%.*]]:2 = scf.if {{%.*}} -> (i32, i32) {
    pair = (n, n + 1)
    if n > 3:
        pair = (pair[1], pair[0])
    tl.store(x, pair[0] - pair[1])


# -- early return ------------------------------------------------------------------------------------------------------


@checks({"x": "*i32", "n": "i32"})
def test_tuples_of_known_numbers_in_a_conditional_expression(x, n):
    # CHECK: [[R:%.*]]:2 = scf.if {{%.*}} -> (i32, i32) {
    pair = (n, 1) if n > 3 else (2, n)
    tl.store(x, pair[0] - pair[1])


@checks({"x": "*i32", "n": "i32"})
def test_early_return(x, n):
    # CHECK: scf.if {{%.*}} {
    # CHECK-NEXT: } else {
    # CHECK:   tt.store
    # CHECK:   scf.if {{%.*}} {
    # CHECK:     tt.store
    # CHECK-NEXT: } else {
    # CHECK:     tt.store
    # CHECK-NEXT: }
    # CHECK-NEXT: }
    # CHECK-NEXT: tt.return
    if n > 9:
        return
    tl.store(x, 1)
    if n > 8:
        pass
    else:
        tl.store(x, 2)
        return
    tl.store(x, 3)


@checks({"x": "*i32", "n": "i32"})
def test_what_follows_is_traced_once(x, n):
    """A branch that returns or falls through: a flag says which."""
    # CHECK: [[R:%.*]]:2 = scf.if {{%.*}} -> (i1, i32) {
    # CHECK:   [[S:%.*]]:2 = scf.if {{%.*}} -> (i1, i32) {
    # CHECK:     [[T:%.*]] = arith.constant true
    # CHECK:     [[P:%.*]] = ub.poison : i32
    # CHECK:     scf.yield [[T]], [[P]]
    # CHECK:   } else {
    # CHECK:     [[Y:%.*]] = arith.constant 2
    # CHECK:     [[F:%.*]] = arith.constant false
    # CHECK:     scf.yield [[F]], [[Y]]
    # CHECK:   scf.yield [[S]]#0, [[S]]#1
    # CHECK: } else {
    # CHECK:   [[G:%.*]] = arith.constant false
    # CHECK:   scf.yield [[G]]
    # CHECK: scf.if [[R]]#0 {
    # CHECK-NEXT: } else {
    # CHECK-NEXT:   tt.store %x, [[R]]#1
    # CHECK-NOT: tt.store
    y = 1
    if n > 3:
        if n > 5:
            return
        y = 2
    tl.store(x, y)


@jit
def many_exits(a, b):
    if a > 0:
        if b > 0:
            return a
        elif b > -5:
            a = a + 1
        else:
            return b
        a += 2
    else:
        if b == 7:
            return a * b
        b = a
    if a > b:
        return a - b
    return b


@checks({"x": "*i32", "n": "i32"})
def test_values_returned_from_many_places(x, n):
    # CHECK: [[R:%.*]]:4 = scf.if {{%.*}} -> (i1, i32, i32, i32) {
    # CHECK: [[V:%.*]] = scf.if [[R]]#0 -> (i32) {
    # CHECK-NEXT:   scf.yield [[R]]#1 : i32
    # CHECK-NEXT: } else {
    # CHECK:   scf.if {{%.*}} -> (i32) {
    # CHECK: tt.store %x, [[V]]
    tl.store(x, many_exits(n, n + 1))


@jit
def falls_off_the_end(a):
    if a > 0:
        return a


@checks({"x": "*i32", "n": "i32"})
def test_falling_off_the_end_gives_no_particular_value(x, n):
    # CHECK: scf.if {{%.*}} -> (i32) {
    # CHECK-NEXT: scf.yield %n
    # CHECK-NEXT: } else {
    # CHECK-NEXT: [[P:%.*]] = ub.poison : i32
    # CHECK-NEXT: scf.yield [[P]]
    tl.store(x, falls_off_the_end(n))


@checks({"x": "*i32", "n": "i32"})
def test_a_known_condition_ends_the_kernel(x, n):
    # CHECK: tt.store
    # CHECK-NEXT: tt.return
    tl.store(x, n)
    if tl.constexpr(True):
        return
    undefined_and_never_seen()  # noqa: F821


@checks({"x": "*i32", "n": "i32"})
def test_return_from_an_unrolled_loop(x, n):
    # CHECK-COUNT-3: scf.if
    # CHECK-NOT: scf.if
    for i in tl.static_range(3):
        if n == i:
            return
        tl.store(x + i, n)


# -- for ---------------------------------------------------------------------------------------------------------------


@checks({"x": "*fp32", "n": "i32"})
def test_for(x, n):
    # CHECK: %total = arith.constant 0.000000e+00 : f32
    # CHECK: [[LOW:%.*]] = arith.constant 0 : i32
    # CHECK: [[STEP:%.*]] = arith.constant 1 : i32
    # CHECK: [[R:%.*]] = scf.for %i = [[LOW]] to %n step [[STEP]] iter_args([[T:%.*]] = %total) -> (f32) : i32 {
    # CHECK:   tt.addptr %x, %i
    # CHECK:   [[S:%.*]] = arith.addf [[T]]
    # CHECK:   scf.yield [[S]] : f32
    # CHECK: }
    # CHECK: tt.store %x, [[R]]
    total = 0.0
    for i in range(n):
        total += tl.load(x + i)
    tl.store(x, total)


@checks({"x": "*i32", "n": "i64", "m": "u32"})
def test_types_of_bounds(x, n, m):
    # CHECK: [[L:%.*]] = arith.extui %m : i32 to i64
    # CHECK: scf.for %i = [[L]] to %n step {{%.*}} : i64
    # CHECK: scf.for %j = {{.*}} : i32
    for i in range(m, n, 2):
        tl.store(x + i, 0)
    for j in range(1, 5):
        tl.store(x + j, 0)


@checks({"x": "*i32", "n": "i32"})
def test_backwards(x, n):
    # CHECK: [[ZERO:%.*]] = arith.constant 0
    # CHECK: [[TWO:%.*]] = arith.constant 2
    # CHECK: scf.for [[I:%.*]] = [[ZERO]] to %n step [[TWO]] : i32 {
    # CHECK:   [[D:%.*]] = arith.subi %n, [[I]]
    # CHECK:   %i = arith.addi [[D]], [[ZERO]]
    for i in range(n, 0, -2):
        tl.store(x, i)


@checks({"x": "*i32", "n": "i32"})
def test_hints(x, n):
    # CHECK: tt.disallow_acc_multi_buffer, tt.flatten, tt.loop_unroll_factor = 2 : i32, tt.num_stages = 3 : i32
    # CHECK-SAME: tt.warp_specialize}
    # CHECK: {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
    for i in tl.range(
        n, num_stages=3, loop_unroll_factor=2, flatten=True, disallow_acc_multi_buffer=True, warp_specialize=True
    ):
        tl.store(x, i)
    for i in tl.range(0, n, disable_licm=True):
        tl.store(x, i)


@checks({"x": "*i32", "n": "i32"})
def test_hints_of_a_range_of_python(x, n):
    """Python's own `range` has no such arguments, but kernels of Triton's users pass them."""
    # CHECK: {tt.flatten}
    for i in range(n, flatten=True):
        tl.store(x, i)


@checks({"x": "*i32", "n": "i32"})
def test_unrolled(x, n):
    # CHECK-COUNT-3: tt.store
    # CHECK-NOT: tt.store
    total = n
    for i in tl.static_range(6, 0, -2):
        total += i
        tl.store(x + i, total)
        last: tl.constexpr = i
    tl.static_assert(i == 2 and last == 2)


@checks({"x": "*i32", "n": "i32"})
def test_unchanged_variables_are_not_carried(x, n):
    # CHECK: scf.for %i = {{.*}} iter_args([[A:%.*]] = %a) -> (i32) : i32 {
    # CHECK-NEXT: scf.yield %b : i32
    a = n + 1
    b = n + 2
    c = n + 3
    for i in range(n):
        a = b
        b = b
        if tl.constexpr(False):
            c = a
    tl.store(x, a + b + c)


@checks({"x": "*i32", "n": "i32"})
def test_nested_loops(x, n):
    # CHECK: scf.for %i = {{.*}} iter_args([[A:%.*]] = {{%.*}}) -> (i32) : i32 {
    # CHECK:   [[R:%.*]] = scf.for %j = {{.*}} iter_args([[B:%.*]] = [[A]]) -> (i32) : i32 {
    # CHECK:     scf.if {{%.*}} -> (i32) {
    # CHECK:   scf.yield [[R]]
    total = 0
    for i in range(n):
        for j in range(i):
            if j > 3:
                total += j
    for j in range(n):
        total += j
    tl.store(x, total)


@checks({"x": "*i32", "n": "i32"})
def test_swapped_in_a_loop(x, n):
    # CHECK: [[R:%.*]]:2 = scf.for {{.*}} iter_args([[A:%.*]] = {{.*}}, [[B:%.*]] = {{.*}}) -> (i32, i32) : i32 {
    # CHECK-NEXT: scf.yield [[B]], [[A]] : i32, i32
    a, b = n + 1, n + 2
    for i in range(n):
        a, b = b, a
    tl.store(x, a - b)


# -- while -------------------------------------------------------------------------------------------------------------


@checks({"x": "*i32", "n": "i32"})
def test_while(x, n):
    # CHECK: [[R:%.*]] = scf.while ([[A:%.*]] = %n) : (i32) -> i32 {
    # CHECK:   [[C:%.*]] = arith.cmpi sgt, [[A]]
    # CHECK:   scf.condition([[C]]) [[A]] : i32
    # CHECK: } do {
    # CHECK: ^bb0([[B:%.*]]: i32):
    # CHECK:   tt.store
    # CHECK:   [[N:%.*]] = arith.subi [[B]]
    # CHECK:   scf.yield [[N]] : i32
    # CHECK: }
    # CHECK: tt.store %x, [[R]]
    m = n
    while n > 0:
        tl.store(x, m)
        n -= 1
        m = m
    tl.store(x, n)


@checks({"x": "*i32", "n": "i32"})
def test_while_with_hints(x, n):
    # CHECK: scf.while
    # CHECK: {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
    while tl.condition(n > 0, disable_licm=True):
        n -= 1
    tl.store(x, n)


# -- what is wrong -----------------------------------------------------------------------------------------------------


def message(fn: Any, signature: dict[str, Any], **constants: Any) -> str:
    with pytest.raises(CompilationError) as caught:
        ir_text(fn, signature, constants)
    return caught.value.message


def test_what_a_branch_leaves_out_cannot_be_carried() -> None:
    def kernel(x, n):
        y = 1.0
        for i in range(n):
            if i > 3:
                z = 2.0
            y = z
        tl.store(x, y)

    assert message(kernel, {"x": "*fp32", "n": "i32"}) == (
        "`z` may have no value here: it is set only if the condition on line "
        f"{kernel.__code__.co_firstlineno + 3} is true"
    )


def test_none_cannot_be_carried() -> None:
    def kernel(x, n):
        y = None
        for i in range(n):
            y = 1.0
        tl.store(x, y)

    assert message(kernel, {"x": "*fp32", "n": "i32"}) == (
        "cannot re-assign `y` in the loop: it is None, known at compile time"
    )


def test_different_objects_in_branches() -> None:
    def kernel(x, n):
        if n > 3:
            kind = tl.float32
        else:
            kind = tl.float16
        tl.store(x, tl.zeros((), kind))

    assert message(kernel, {"x": "*fp32", "n": "i32"}) == (
        "`kind` may have no value here: it is the type fp32 if the condition on line "
        f"{kernel.__code__.co_firstlineno + 1} is true, else the type fp16, which cannot be chosen between when the "
        "kernel runs"
    )


def test_bounds_must_be_integers() -> None:
    def kernel(x, n):
        for i in range(n):
            pass

    assert message(kernel, {"x": "*fp32", "n": "fp32"}) == (
        "the end of a `for` must be an integer scalar, found a scalar fp32"
    )
    assert message(kernel, {"x": "*fp32"}, n=1.5) == "the end of a `for` must be an integer scalar, found constexpr 1.5"

    def backwards(x, n):
        for i in range(n, 0, -1):
            pass

    assert message(backwards, {"x": "*fp32", "n": "fp32"}) == (
        "the start of a `for` must be an integer scalar, found a scalar fp32"
    )


def test_hints_that_are_no_numbers() -> None:
    def kernel(x, n):
        for i in tl.range(0, n, loop_unroll_factor=n):
            pass

    def negative(x, n):
        for i in tl.range(0, n, num_stages=-1):
            pass

    what = "of a range must be an integer known at compile time, found"
    assert message(kernel, {"x": "*fp32", "n": "i32"}) == f"loop_unroll_factor {what} a scalar int32"
    assert message(negative, {"x": "*fp32", "n": "i32"}) == f"num_stages {what} constexpr -1"


def test_a_step_of_zero() -> None:
    def kernel(x, n):
        for i in range(0, n, 0):
            pass

    def unrolled(x, n):
        for i in tl.static_range(0, 3, 0):
            pass

    assert message(kernel, {"x": "*fp32", "n": "i32"}) == "the step of a range must not be 0"
    assert message(unrolled, {"x": "*fp32", "n": "i32"}) == "the step of static_range must not be 0"


def test_what_a_for_runs_over() -> None:
    def kernel(x, n):
        for i in (1, 2):
            pass

    assert message(kernel, {"x": "*fp32", "n": "i32"}) == "a `for` runs over range, tl.range or tl.static_range only"


def test_the_unroll_budget_covers_nested_loops() -> None:
    def kernel(x):
        for i in tl.static_range(20):
            for j in tl.static_range(20):
                pass

    ir_text(kernel, {"x": "*fp32"}, options=CompileOptions(unroll_budget=420))
    with pytest.raises(CompilationError, match=r"unrolls 20 bodies, 400 were unrolled before, and the limit .* 419"):
        ir_text(kernel, {"x": "*fp32"}, options=CompileOptions(unroll_budget=419))


def test_operations_have_locations() -> None:
    def kernel(x, n):
        if n > 3:
            tl.store(x, helper(n))

    from_file = ir_text_with_locations(kernel, {"x": "*i32", "n": "i32"})
    line = kernel.__code__.co_firstlineno
    filecheck(
        from_file,
        f"""
        CHECK: arith.cmpi sgt, {{{{.*}}}} loc([[A:#.*]])
        CHECK: arith.addi {{{{.*}}}} loc([[B:#.*]])
        CHECK: tt.store {{{{.*}}}} loc([[C:#.*]])
        CHECK-DAG: [[A]] = loc("{{{{.*}}}}test_control_flow.py":{line + 1}:11)
        CHECK-DAG: [[C]] = loc("{{{{.*}}}}test_control_flow.py":{line + 2}:12)
        CHECK-DAG: [[B]] = loc(callsite(
        """,
    )


@jit
def helper(a):
    return a + 1


def ir_text_with_locations(fn: Any, signature: dict[str, Any]) -> str:
    from weft import ir
    from weft.frontend import ast_to_ttir

    return ir.print_module(ast_to_ttir(jit(fn), signature), locations=True)

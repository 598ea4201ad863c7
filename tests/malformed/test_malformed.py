"""A sample of what `make malformed` tries, and each kind of what it has found."""

from __future__ import annotations

import subprocess
import sys

import pytest

import weft
from children import SOURCE, TESTS, environment
from weft import cli_layout
from weft.base import CompilationError, LayoutError
from weft.compiler import IRSource
from weft.layouts import BlockedLayout, NVMMASharedLayout, PaddedSharedLayout, mfma_scale_layout, wmma_scale_layout

from .judge import KINDS, shown, verdict

SAMPLE = {"kernels": range(6000, 6025), "ttir": range(15), "ttgir": range(15), "layouts": range(150)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample(kind: str) -> None:
    for seed in SAMPLE[kind]:
        said, what = verdict(kind, seed)
        assert said in ("PASS", "UNSUPPORTED", "VALID"), f"{kind} {seed}: {said} {what}\n{shown(kind, seed)}"


@pytest.mark.slow  # Python compiles all that is imported once more
def test_nothing_hangs_on_assertions() -> None:
    """Under `python -O` the same is said; a child process as the campaign has it."""
    pairs = [f"{seed}:{kind}" for kind, count in (("ttir", 8), ("ttgir", 8), ("layouts", 30)) for seed in range(count)]
    command = [sys.executable, "-O", "-m", "malformed.run", "--batch", " ".join(pairs)]
    child = subprocess.run(command, env=environment(TESTS, SOURCE), capture_output=True, text=True, check=True)
    said = [line for line in child.stdout.split("\n") if not line.startswith("VALID ")]
    assert said == [*(f"DONE {pair}" for pair in pairs), ""]


IR = """module attributes {{{module}}} {{
  tt.func public @f(%p: !tt.ptr<f32> {{{argument}}}) {{
    %0 = tt.load %p : !tt.ptr<f32> loc("k.py":{line}:{column})
    tt.store %p, %0 : !tt.ptr<f32>
    tt.return
  }}
}}
"""
GOOD = {"module": "", "argument": "tt.divisibility = 16 : i32", "line": "7", "column": "4"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"argument": "tt.divisibility = 16.0 : f32"},
            "k.ttir:2:3: error: tt.func: 'tt.divisibility' must be an integer, or one for each dimension",
        ),
        (
            {"module": '"ttg.num-warps" = 1.0 : f32'},
            "k.ttir:1:1: error: builtin.module: 'ttg.num-warps' must be a power of two from 1 to 64, "
            "not 1.000000e+00 : f32",
        ),
        (
            {"module": '"ttg.threads-per-warp" = 33 : i32'},
            "k.ttir:1:1: error: builtin.module: 'ttg.threads-per-warp' must be a power of two from 1 to 64, not 33",
        ),
        (
            {"module": '"ttg.num-ctas" = "two"'},
            "k.ttir:1:1: error: builtin.module: 'ttg.num-ctas' must be a power of two from 1 to 16, not \"two\"",
        ),
        ({"module": "ttg.target = 80 : i32"}, "k.ttir:1:1: error: builtin.module: 'ttg.target' must be a string"),
        ({"line": "-1"}, "k.ttir:3:47: error: the number of a line is from 0 to 4294967295, not -1"),
        ({"column": str(2**32)}, "k.ttir:3:49: error: the number of a column is from 0 to 4294967295, not 4294967296"),
    ],
)
def test_attributes_and_places_of_ir(changed: dict[str, str], message: str) -> None:
    for target in ("cuda:80", "cpu")[: 1 if "module" in changed else 2]:
        with pytest.raises(CompilationError) as caught:
            weft.compile(IRSource(IR.format(**GOOD | changed), path="k.ttir"), target)
        assert str(caught.value).splitlines()[0] == message


def test_a_column_that_llvm_has_no_room_for_is_left_out() -> None:
    """A line of a kernel may be that long."""
    made = weft.compile(IRSource(IR.format(**GOOD | {"column": "70000"}), path="k.ttir"), "cuda:80")
    assert "line: 7, column: 0" in made.asm["llir"] and ".loc" in made.asm["ptx"]


def test_an_operation_without_a_place_has_that_of_what_it_stands_in() -> None:
    text = "module {\n  tt.func @f(%n: i32) {\n    %0 = tt.make_range {end = 7 : i32, start = 0 : i32}"
    text += ' : tensor<8xi32> loc(unknown)\n    tt.return\n  } loc("k.py":3:4)\n}\n'
    with pytest.raises(CompilationError, match=r"^k\.py:3:5: error: tt\.make_range: "):
        weft.compile(IRSource(text, path="k.ttir"))


@weft.jit
def good(x_ptr, n):
    weft.language.store(x_ptr + n, 1.0)


@pytest.mark.parametrize(
    ("signature", "column", "message"),
    [
        ({"x_ptr": "*fp32"}, 17, "the signature says nothing about parameter 'n' of good"),
        ({"x_ptr": "*fp32", "n": "fp99"}, 17, "the type of parameter `n` of good: unknown type 'fp99'"),
        ({"x_ptr": "*fp32", "n": "i32", "m": "i32"}, 5, "the signature names ['m'], but the parameters of good are"),
    ],
)
def test_a_wrong_signature_is_told_at_the_parameter(signature: dict[str, str], column: int, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        weft.ASTSource(good, signature)
    assert caught.value.message.startswith(message) and caught.value.span is not None
    assert caught.value.span.col + 1 == column and (caught.value.source_line or "").startswith("def good(")


@weft.jit
def casts_to_a_function(x_ptr):
    x = weft.language.load(x_ptr)
    weft.language.store(x_ptr, x.to(weft.language.device_print))


@weft.jit
def stores_a_condition(x_ptr):
    weft.language.store(x_ptr, weft.language.condition(weft.language.program_id(0) == 0))


@weft.jit
def ranges_over_a_module(x_ptr):
    weft.language.store(x_ptr, range(weft))


def test_a_range_of_what_is_no_integer() -> None:
    with pytest.raises(CompilationError, match=r": error: range\(\) takes integers, found the module weft\n"):
        weft.compile(weft.ASTSource(ranges_over_a_module, {"x_ptr": "*fp32"}))


@pytest.mark.parametrize(
    ("kernel", "found"),
    [(casts_to_a_function, "got function device_print"), (stores_a_condition, "cannot convert a condition of type ")],
)
def test_objects_are_told_without_their_addresses(kernel: weft.JITFunction, found: str) -> None:
    with pytest.raises(CompilationError) as caught:
        weft.compile(weft.ASTSource(kernel, {"x_ptr": "*fp32"}))
    assert found in caught.value.message and " at 0x" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: PaddedSharedLayout([[64, 2**63]], [[1]], [], [2]),
            "PaddedSharedLayout: an entry of a pair of interval_padding_pairs must be at most 1073741824, "
            "got 9223372036854775808",
        ),
        (
            lambda: PaddedSharedLayout.with_identity_for([2, 2], [16], [0]),
            "PaddedSharedLayout: a pair of interval_padding_pairs must be a list, got 2",
        ),
        (
            lambda: NVMMASharedLayout.get_default_for([], 16),
            "NVMMASharedLayout: block_shape is empty; it needs a power of two for each dimension of the tile",
        ),
        (
            lambda: NVMMASharedLayout.get_default_for(None, 16),  # type: ignore[arg-type]
            "NVMMASharedLayout: block_shape must be a list, got None",
        ),
        (
            lambda: mfma_scale_layout(BlockedLayout([1], [64], [1], [0]), [64]),
            "mfma_scale_layout: the layout must be an operand of a 16x16 or 32x32 AMDMFMALayout of rank 2, got "
            "BlockedLayout(",
        ),
        (
            lambda: wmma_scale_layout(None, [64]),
            "wmma_scale_layout: the layout must be an operand of an AMDWMMALayout of version 3 and rank 2, got None",
        ),
    ],
)
def test_parameters_of_layouts(make: object, message: str) -> None:
    with pytest.raises(LayoutError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["show", "BlockedLayout([1], [32], [4], [0])" + " " * 20_000], "<layout>:1:20001: error: the expression has"),
        (
            ["show", "(4194304,8):(8,1)"],
            "<layout>:1:1: error: the layout has 2^25 places and 2^25 elements, pictures are drawn of 2^22 at most",
        ),
        (
            ["conflicts", "SwizzledSharedLayout(1, 1, 1, [0])", "BlockedLayout([1], [32], [4], [0])"],
            "<layout>:1:1: error: conflicts takes a layout in registers first, then one in shared memory",
        ),
    ],
)
def test_what_is_wrong_with_an_expression_has_a_place(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_layout.main(command) == 2
    assert capsys.readouterr().err.startswith(message)

"""How diagnostics read, that they pickle, and that they turn into plain data."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from weft.base import (
    CompilationError,
    CompilerCrash,
    CompileTimeAssertionFailure,
    DeviceAssertionError,
    LaunchError,
    LaunchTypeError,
    LayoutError,
    Note,
    OutOfResources,
    Span,
    Unsupported,
    UnsupportedLanguageConstruct,
    WeftError,
    caret_line,
)


def test_a_compilation_error_shows_place_line_notes_and_hint() -> None:
    error = CompilationError(
        "dot needs K >= 16 for f16 operands, got K = 8",
        Span("k.py", 14, 10, 14, 22),
        source_line="    acc = tl.dot(a, b)",
        notes=[
            Note("`a` has K = 8 because of BLOCK_K", Span("k.py", 6, 0, 6, 7), "BLOCK_K = 8"),
            Note("the first operand is a tile of 8 columns"),
        ],
        hint="choose BLOCK_K = 16 or more",
    )
    assert str(error) == (
        "k.py:14:11: error: dot needs K >= 16 for f16 operands, got K = 8\n"
        "   14 |     acc = tl.dot(a, b)\n"
        "      |           ^^^^^^^^^^^^\n"
        "k.py:6:1: note: `a` has K = 8 because of BLOCK_K\n"
        "    6 | BLOCK_K = 8\n"
        "      | ^^^^^^^\n"
        "note: the first operand is a tile of 8 columns\n"
        "hint: choose BLOCK_K = 16 or more"
    )


def test_an_error_without_a_place_is_one_line() -> None:
    assert str(CompilationError("no kernel")) == "error: no kernel"


def test_the_source_line_is_found_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("a = 1\nb = a +\n", encoding="utf-8")
    error = CompilationError("stop", Span(str(file), 2, 4))
    assert str(error) == f"{file}:2:5: error: stop\n    2 | b = a +\n      |     ^"
    assert CompilationError("stop", Span("nowhere.py", 2, 4)).source_line is None
    assert str(CompilationError("stop", Span("nowhere.py", 2, 4))) == "nowhere.py:2:5: error: stop"


@pytest.mark.parametrize(
    ("line", "span", "carets"),
    [
        ("x = y", Span("f", 1, 4, 1, 5), "    ^"),
        ("x = y", Span("f", 1, 4), "    ^"),
        ("\tx = y", Span("f", 1, 1, 1, 6), "\t^^^^^"),
        ("x = f(a,", Span("f", 1, 4, 3, 1), "    ^^^^"),  # goes on: to the end of the line
        ("é = y", Span("f", 1, 5, 1, 6), "    ^"),  # ast counts bytes
        ("層 = y", Span("f", 1, 6, 1, 7), "     ^"),  # two cells wide
        ("x", Span("f", 1, 7, 1, 9), " ^"),  # a span past the line
    ],
)
def test_carets(line: str, span: Span, carets: str) -> None:
    assert caret_line(line, span) == carets


def test_unsupported_names_feature_and_targets() -> None:
    error = Unsupported("inline assembly", "cpu", works_on=["cuda:90", "hip:gfx942"])
    assert str(error) == (
        "error: inline assembly is not supported on target cpu\nhint: it works on cuda:90, hip:gfx942"
    )
    assert (error.feature, error.target) == ("inline assembly", "cpu")


def test_a_device_assertion_names_program_and_kernel() -> None:
    error = DeviceAssertionError("index < n", Span("nowhere.py", 3, 4), (1, 0, 2), kernel="gather")
    assert str(error) == (
        "nowhere.py:3:5: error: device assertion failed: index < n\nnote: in program (1, 0, 2) of kernel `gather`"
    )


def test_a_crash_says_whose_fault_it_is() -> None:
    text = str(CompilerCrash("KeyError: 3", "the frontend", Span("nowhere.py", 1, 0), ir="module {}\n"))
    assert text.startswith("nowhere.py:1:1: internal error: Weft failed in the frontend: KeyError: 3\n")
    assert "a fault of Weft, not of your kernel" in text
    assert text.endswith("--- IR before ---\nmodule {}")


def test_out_of_resources_reads_as_in_triton() -> None:
    error = OutOfResources(300_000, 232_448, "shared memory")
    assert str(error) == (
        "out of resource: shared memory, Required: 300000, Hardware limit: 232448. "
        "Reducing block sizes or `num_stages` may help."
    )


def test_a_resource_of_which_nobody_says_how_much_there_is() -> None:
    assert str(OutOfResources(0, 0, "GPU memory", "free arrays")) == "out of resource: GPU memory.\nhint: free arrays"


def test_the_family() -> None:
    for kind in (UnsupportedLanguageConstruct, CompileTimeAssertionFailure, Unsupported, LayoutError):
        assert issubclass(kind, CompilationError)
    for kind in (CompilationError, OutOfResources, LaunchError, DeviceAssertionError, CompilerCrash):
        assert issubclass(kind, WeftError)
    assert issubclass(LaunchError, ValueError)
    assert issubclass(LaunchTypeError, TypeError)
    assert issubclass(DeviceAssertionError, AssertionError)


ERRORS = [
    CompilationError("a", Span("k.py", 1, 2, 3, 4), source_line="x", notes=[Note("n", Span("k.py", 5, 6))], hint="h"),
    UnsupportedLanguageConstruct("a", Span("k.py", 1, 2), source_line="lambda: 0"),
    CompileTimeAssertionFailure("a"),
    Unsupported("f", "cpu", Span("k.py", 1, 2)),
    LayoutError("bad basis"),
    OutOfResources(3, 2, "threads"),
    LaunchError("bad grid", "grid", hint="use a tuple"),
    LaunchTypeError("bad argument", "x"),
    DeviceAssertionError("m", Span("k.py", 1, 2), (0, 0, 0), "f", kernel="k"),
    CompilerCrash("oops", "stage", Span("k.py", 1, 2), ir="i", traceback="t"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_errors_pickle(error: WeftError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_errors_turn_into_plain_data(error: WeftError) -> None:
    def plain(value: object) -> bool:
        if isinstance(value, dict):
            return all(isinstance(k, str) and plain(v) for k, v in value.items())
        if isinstance(value, (list, tuple)):
            return all(map(plain, value))
        return value is None or isinstance(value, (str, int, float, bool))

    data = error.to_dict()
    assert data["kind"] == type(error).__name__
    assert data["message"] == error.message
    assert plain(data)


def test_a_place_is_set_once() -> None:
    error = CompilationError("a").with_span(Span("k.py", 1, 2), "line")
    assert error.span == Span("k.py", 1, 2)
    assert error.with_span(Span("k.py", 9, 9)).span == Span("k.py", 1, 2)

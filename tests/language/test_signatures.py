"""The names of the language and their parameters, against Triton 3.6.0."""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
from typing import Any

import pytest

import weft.gluon.language as gl
import weft.language as tl
from weft.language import builtins, core, math, random, semantic, standard

HAVE_TRITON = importlib.util.find_spec("triton") is not None
needs_triton = pytest.mark.skipif(not HAVE_TRITON, reason="Triton is not installed")


LATER = {("dot", "out_dtype"): ("None", "fp32")}
"""Defaults that later versions of Triton changed: Weft's, which is theirs, and that of 3.6.0."""
NEWER = {"atomic_poll": "3.7", "expect_zero": "3.7", "atomic_load": "3.9", "atomic_store": "3.9"}
"""Names that came after Triton 3.6, with the first version known to have them."""
NEWER_PARAMETERS = {("cat", "dim"): "3.9", ("topk", "descending"): "3.9"}
"""Parameters that came after it, in the same way."""
OWN = {"pointer", "Scalar"}
"""Names that only Weft has."""
OWN_PARAMETERS = {("pointer_type", "of_bool")}
"""Parameters that only Weft has."""


def absent(version: str) -> bool:
    """Whether the Triton that is installed is older."""
    import triton

    installed, first = (tuple(map(int, text.split(".")[:2])) for text in (triton.__version__, version))
    return installed < first


def test_every_public_name_is_there() -> None:
    assert len(tl.__all__) == len(set(tl.__all__)) == 140 + len(NEWER) + len(OWN)  # 140 are Triton 3.6's
    assert NEWER.keys() | OWN < set(tl.__all__)
    assert all(hasattr(tl, name) for name in tl.__all__)


FAMILIES = [importlib.import_module(f.name) for f in pkgutil.iter_modules(builtins.__path__, "weft.language.builtins.")]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_builtin_is_public_where_its_file_says_so(family: Any) -> None:
    name = family.__name__.rpartition(".")[2]
    if name in ("commuting", "internals"):  # not of the language
        assert not set(family.__all__) & {*tl.__all__, *gl.__all__}
        return
    public = set(family.__all__)
    assert public and public <= set(tl.__all__) and public <= set(core.__all__)
    assert all(getattr(tl, each) is getattr(core, each) is getattr(family, each) for each in public)
    inherited = {each for each in public if getattr(gl, each, None) is getattr(family, each)}
    assert inherited == (set() if name == "tl_only" else public)


def parameters(function: Any) -> list[tuple[str, Any, str]]:
    """Names, kinds and defaults of what users pass."""
    function = getattr(function, "fn", function)
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("_semantic", "_generator"):
            continue
        default = parameter.default
        default = getattr(default, "value", default)
        shown = "none" if default is inspect.Parameter.empty else str(getattr(default, "name", default))
        found.append((parameter.name, parameter.kind, shown))
    return found


@needs_triton
def test_names_are_tritons() -> None:
    import triton.language as theirs

    later = {name for name, version in NEWER.items() if absent(version)}
    assert set(tl.__all__) - later - OWN == set(theirs.__all__) and not later & set(theirs.__all__)


@needs_triton
@pytest.mark.parametrize("name", sorted({*tl.__all__} - OWN))
def test_parameters_are_tritons(name: str) -> None:
    import triton.language as theirs

    if name in NEWER and absent(NEWER[name]):
        pytest.skip("a newer name")
    ours, other = getattr(tl, name), getattr(theirs, name)
    if not callable(ours) or inspect.ismodule(ours) or name in ("PropagateNan",):
        pytest.skip("not a function")
    if isinstance(ours, core.dtype):
        pytest.skip("a type")
    mine, found = parameters(ours), parameters(other)
    more = {at for at, version in NEWER_PARAMETERS.items() if absent(version)} | OWN_PARAMETERS
    names = {parameter for owner, parameter in more if owner == name}
    assert names <= {parameter for parameter, _, _ in mine} - {parameter for parameter, _, _ in found}
    mine = [each for each in mine if each[0] not in names]
    for at, (parameter, kind, default) in enumerate(found):
        if (name, parameter) in LATER:
            now, before = LATER[name, parameter]
            assert default == before
            found[at] = (parameter, kind, now)
    assert mine == found


@needs_triton
def test_methods_of_tensor() -> None:
    import triton.language as theirs

    wanted = {n for n in vars(theirs.tensor) if not n.startswith("__init")}
    wanted -= {"__module__", "__doc__", "__dict__", "__weakref__", "__annotations__"}
    assert {n for n in wanted if not hasattr(tl.tensor, n)} == set()
    for name in wanted:
        other = getattr(theirs.tensor, name)
        if callable(other) and not isinstance(other, property) and name not in ("__hash__", "__str__", "_flatten_ir"):
            assert [p[0] for p in parameters(getattr(tl.tensor, name))][1:] == [p[0] for p in parameters(other)][1:], (
                name
            )


@needs_triton
@pytest.mark.parametrize("module", ["core", "standard", "math", "random", "semantic"])
def test_internals_that_user_code_reaches_for(module: str) -> None:
    import importlib

    theirs = importlib.import_module(f"triton.language.{module}")
    ours = {"core": core, "standard": standard, "math": math, "random": random, "semantic": semantic}[module]
    helpers = {
        "_NOTHING", "_add_atomic_docstr", "_add_math_1arg_docstr", "_add_math_2arg_docstr", "_add_math_3arg_docstr",
        "_add_reduction_docstr", "_add_scan_docstr", "_check_dtype", "_insertion_guard", "_shape_check_impl",
        "is_negative_zero", "_bitonic_merge", "_bitonic_merge_hypercube", "_compare_and_swap", "_get_flip_dim",
        "_indicator", "_pick_sum_dtype", "T", "TensorTy", "_tensor_member_fn", "_DtypeClass",
    }  # fmt: skip
    missing = [
        name
        for name, value in vars(theirs).items()
        if getattr(value, "__module__", None) == theirs.__name__ and not hasattr(ours, name) and name not in helpers
    ]
    assert missing == []


@needs_triton
def test_methods_of_the_semantic() -> None:
    from triton.language.semantic import TritonSemantic

    missing = [n for n in vars(TritonSemantic) if not n.startswith("__") and not hasattr(semantic.TritonSemantic, n)]
    of_checks = {"_has_native_tma", "_descriptor_atomic_min_max_supported"}  # which only its own methods call
    assert [n for n in missing if n not in {"lang", "_abc_impl", *of_checks}] == []


def test_builtins_only_work_in_kernels() -> None:
    with pytest.raises(ValueError, match=r"^`load` builds kernel code and works only inside a kernel: did you forget"):
        tl.load(1)

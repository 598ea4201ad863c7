"""`kernel.to_gluon`: arguments bound as a launch binds them, and the kernel that they get as Gluon source.

source = kernel.to_gluon(x, out, 1000, BLOCK=1024, target="cuda:90")
source.save("kernel_for_cuda_90.py")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from weft import compiler, writing
from weft.base import WeftError
from weft.base.made_tensors import MadeTensor
from weft.writing import TRITON, WEFT, GluonSource

from . import explaining
from .explaining import _inner, _on_host, _target_of
from .handed_over import HandedOver
from .launch import runtime_leaves
from .specialize import leaf_at, signature_of
from .tensors import MockTensor, looks_like_dtype
from .watching import SIMULATED, Watched


def to_gluon(kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> HandedOver:
    """The Gluon source of what a launch with these arguments would run."""
    kwargs = dict(kwargs)
    kwargs.pop("grid", None)
    while not hasattr(kernel, "_compile_for"):
        kernel, kwargs = _inner(kernel, args, kwargs)
    names = kernel.arg_names
    target = kwargs.pop("target", None) if "target" not in names else None
    package = kwargs.pop("package", None) if "package" not in names else None
    args = [MockTensor.wrap_dtype(value) for value in args]
    kwargs = {name: MockTensor.wrap_dtype(v) if looks_like_dtype(v) else v for name, v in kwargs.items()}
    bound, options = kernel._bind(*args, **kwargs)
    target = (target or _target_of(kernel, bound)).removeprefix(SIMULATED)
    bound = tuple(map(_on_host, bound))
    signature, constants, attributes = signature_of(names, kernel._specialization(bound, target), list(bound))
    options = kernel._options(options, bound)
    values = [leaf_at(bound, path) for path, _ in runtime_leaves(list(signature.values()))]
    texts: list[GluonSource] = []
    for place in (package or _package_of(kernel), WEFT):
        src = compiler.ASTSource(kernel, signature, constants, attributes)
        text = writing.written(src, target, options, place)
        if not _are_described(text.made, values):
            options = {**options, "made_tensors": False}
            text = writing.written(src, target, options, place)
        texts.append(text)
        if place == WEFT:
            break
    source = texts[0]
    parts = texts[-1].parts
    arguments = [part for name, value in zip(names, bound, strict=True) for part in _parts(value, name in parts)]
    facts = source.text, source.name, source.options, source.parts, source.types
    return HandedOver(*facts, own=texts[-1].text, arguments=arguments)


def _are_described(tensors: Sequence[MadeTensor], values: Sequence[Any]) -> bool:
    """Whether there are these tensors for the values of a launch: none has a size of 0 or a negative stride."""
    parts = [part for value in values for part in _parts(value, hasattr(value, "block_shape"))]
    numbers = [int(part) if isinstance(part, (int, np.integer)) else 0 for part in parts]
    try:
        for tensor in tensors:
            tensor.parts(numbers)
    except ValueError:
        return False
    return True


def _parts(value: Any, is_descriptor: bool) -> list[Any]:
    """What an argument is for the source's kernel."""
    if not is_descriptor:
        return [value]
    return [value.base, int(value.padding == "nan"), *value.shape, *value.strides]


def _package_of(kernel: Any) -> str:
    """Where the user's file has Gluon from: `triton`, if it imports that."""
    modules = [(n, value.__name__) for n, value in kernel.fn.__globals__.items() if isinstance(value, ModuleType)]
    return TRITON if any(name.partition(".")[0] == "triton" for names in modules for name in names) else WEFT


class Launches(Watched):
    """A `with` in which launches are written as Gluon source and not done: `sources`, those that are alike once."""

    def __init__(self, target: str, name: str | None = None) -> None:
        super().__init__(target, name)
        self.sources: dict[str, HandedOver] = {}
        """By their text, in the order of the launches."""

    def note(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        source = to_gluon(kernel, args, {**kwargs, "target": self.target})
        self.sources.setdefault(source.text, source)


class ExplainedLaunches(explaining.Launches):
    """A `with` in which launches are explained, and written as Gluon source: `sources`, one for each explanation."""

    def __init__(self, target: str, name: str | None = None) -> None:
        super().__init__(target, name)
        self.sources: list[HandedOver | WeftError] = []
        """The error says what Gluon has no word for."""

    def note(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        before = len(self.explanations)
        super().note(kernel, grid, args, kwargs)
        if len(self.explanations) == before:  # the same launch as one before
            return
        try:
            self.sources.append(to_gluon(kernel, args, {**kwargs, "target": self.target}))
        except WeftError as error:
            self.sources.append(error)

"""Triton 3.6.0 compiles the Gluon source of kernels, where it is installed; no GPU is needed."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from weft.writing import TRITON, NoWord, written
from writing.compare import TARGETS, applies, kernels

triton = pytest.importorskip("triton", minversion="3.6", reason="compares with Triton")
if not triton.__version__.startswith("3.6."):
    pytest.skip("the comparison is with Triton 3.6", allow_module_level=True)

EVERY = kernels()
SAMPLE = (
    "kernels/layer_norm_backward",
    "kernels/matmul_f16",
    "kernels/flash_attention_64_causal",
    "kernels/scalar_memory",
    "benchmarks/matmul_128x128x64",
)
EACH = 4
OWN = ("gl.extra.rows", "gl.extra.descriptors", "gl.extra.programs", "each_warp=", "turns.")
"""Words of Weft's own."""
LEAST = 0.95
"""Of the sources without a word of Weft's own, every fourth kernel, how many Triton compiles."""


def compiled(name: str, target: str, folder: Path) -> str | None:
    """What Triton makes of the source of a kernel, PTX; None where it uses what Weft alone has."""
    make, options = EVERY[name]
    source = written(make(), target, options, TRITON)
    if any(word in source.text for word in OWN):
        return None
    path = folder / f"{re.sub(r'[^a-zA-Z0-9]', '_', name)}_{target[-2:]}.py"
    path.write_text(source.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return _ptx(getattr(module, source.name), make(), source, target)


def _ptx(kernel: Any, first: Any, source: Any, target: str) -> str:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    from triton.experimental.gluon._runtime import GluonASTSource

    if source.parts:
        names = kernel.arg_names
        signature = {n: source.types[n][0] if n in source.types else "constexpr" for n in names}
        constants = {(names.index(first.fn.arg_names[path[0]]),): v for path, v in first.constants.items()}
        attributes = {(names.index(n),): [["tt.divisibility", by]] for n, (_, by) in source.types.items() if by > 1}
    else:
        signature, constants, attributes = dict(first.signature), dict(first.constants), dict(first.attrs)
    made = GluonASTSource(kernel, signature, constants, attributes)
    chosen = GPUTarget("cuda", int(target[-2:]), 32)
    options = make_backend(chosen).parse_options(dict(source.options)).__dict__
    return str(triton.compile(made, target=chosen, options=dict(options)).asm["ptx"])


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str, tmp_path: Path) -> None:
    ptx = compiled(name, "cuda:90", tmp_path)
    assert ptx is not None and ".visible .entry" in ptx


@pytest.mark.slow
def test_all(tmp_path: Path) -> None:
    accepted, refused = 0, []
    for name in list(EVERY)[::EACH]:
        for target in TARGETS:
            if not applies(name, target):
                continue
            try:
                accepted += compiled(name, target, tmp_path) is not None
            except NoWord:
                continue
            except Exception as error:
                refused.append(f"{name} on {target}: {type(error).__name__} {str(error)[-300:]}")
    print(f"{accepted} of {accepted + len(refused)} are compiled by Triton", *refused, sep="\n")
    assert accepted >= LEAST * (accepted + len(refused)), "\n".join(refused)

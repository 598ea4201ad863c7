"""The files of kernels that `sides` provides for, loaded with Weft alone: no GPU and no Triton is needed."""

# mypy: ignore-errors
from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import weft
import weft.language


def loaded(file):
    """A module of kernels, as `gpu.py` loads it for Weft's side."""
    sys.modules["sides"] = sides = types.ModuleType("sides")
    vars(sides).update(jit=weft.jit, tl=weft.language, libdevice=weft.language.extra.libdevice)
    spec = importlib.util.spec_from_file_location(f"{file}_weft", Path(__file__).resolve().parent / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module

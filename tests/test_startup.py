"""Start-up: what a new process does not load before it needs it.

A process that runs kernels out of the cache should cost little more than NumPy and LLVM's linker; xDSL, the frontend,
the passes and the code generation take half a second to import, and come with the first kernel that is not in it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

KERNEL = """
import sys
import numpy as np
import weft
import weft.language as tl


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)
"""

LAUNCH = """
x = np.arange(1000, dtype=np.float32)
out = np.empty_like(x)
add[(weft.cdiv(x.size, 256),)](x, x, out, x.size, BLOCK=256)
assert (out == 2 * x).all()
print(*sorted(sys.modules))
"""

COMPILER = (
    *("xdsl", "weft.frontend.entry", "weft.language.semantic", "weft.passes", "weft.analysis"),
    *("weft.base.remarks", "weft.backends.cpu.codegen", "weft.backends.llvm.machine", "weft.compiler.cpu_stages"),
)


def loaded_by(*command: str, **environment: str) -> set[str]:
    """The modules that a new process has loaded, which prints them."""
    environment = {**os.environ, **environment}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def test_a_launch_out_of_the_cache_loads_no_compiler(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(KERNEL + LAUNCH)
    cache = str(tmp_path / "cache")
    assert set(COMPILER) <= loaded_by(str(script), WEFT_CACHE_DIR=cache)  # the names are right: compiling loads them
    assert not loaded_by(str(script), WEFT_CACHE_DIR=cache) & set(COMPILER)


def test_a_program_written_for_triton_loads_no_compiler(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text((KERNEL + LAUNCH).replace("weft", "triton"))
    command, cache = ("-m", "weft", "run", str(script)), str(tmp_path / "cache")
    assert set(COMPILER) <= loaded_by(*command, WEFT_CACHE_DIR=cache)
    assert not loaded_by(*command, WEFT_CACHE_DIR=cache) & set(COMPILER)


def test_a_kernel_for_a_gpu_out_of_the_cache_loads_no_compiler(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    source = 'weft.ASTSource(add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 256})'
    script.write_text(f"{KERNEL}\nassert weft.compile({source}, 'cuda:80').asm['ptx']\nprint(*sorted(sys.modules))\n")
    compiler = {"xdsl", "weft.frontend.entry", "weft.passes", "weft.lower", "weft.layouts", "weft.compiler.gpu_stages"}
    never = {"importlib.metadata"}  # which tells what is installed, in 40 ms
    cache = str(tmp_path / "cache")
    loaded = loaded_by(str(script), WEFT_CACHE_DIR=cache)
    assert compiler <= loaded and "weft.targets.nvidia" in loaded
    assert not loaded & {"weft.targets.amd", "weft.targets.intel"}  # the instructions of other vendors
    assert not loaded_by(str(script), WEFT_CACHE_DIR=cache) & (compiler | never)


@pytest.mark.parametrize("module", ["weft", "weft.language", "weft.runtime", "weft.compiler.stages"])
def test_importing_loads_no_compiler(module: str) -> None:
    loaded = loaded_by("-c", f"import sys, {module}; print(*sorted(sys.modules))")
    assert module in loaded and not loaded & set(COMPILER)


def test_importing_weft_loads_nothing_else_of_it() -> None:
    loaded = loaded_by("-c", "import sys, weft; print(*sorted(sys.modules))")
    assert {name for name in loaded if name.startswith("weft")} == {"weft"}


def test_the_language_needs_no_numpy() -> None:
    assert "numpy" not in loaded_by("-c", "import sys, weft.language; print(*sorted(sys.modules))")


FACES = ("weft", "weft.ir", "weft.language", "weft.frontend", "weft.analysis", "weft.compiler", "weft.runtime")


@pytest.mark.parametrize("face", [*FACES, "weft.backends.cpu", "weft.backends.nvidia"])
def test_lazy_faces_have_their_names(face: str) -> None:
    module = importlib.import_module(face)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    with pytest.raises(AttributeError, match=f"module '{face}' has no attribute 'no_such_name'"):
        module.no_such_name
    # A name that is a module's too would be one or the other, by what was imported first. `jit` is never lazy.
    files = {found.name for found in pkgutil.iter_modules(module.__path__)} - {"jit"}
    assert [name for name in files & set(module.__all__) if not inspect.ismodule(getattr(module, name))] == []


def public_names(module: ModuleType) -> set[str]:
    """What `import *` gives type checkers: of a module without a list, the public names that it defines itself."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    names: set[str] = set()
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("face", ["weft.ir", "weft.analysis", "weft.compiler", "weft.runtime"])
def test_type_checkers_see_what_a_lazy_face_gives(face: str) -> None:
    """The table of `lazy_face` and the imports under TYPE_CHECKING name the same, module by module."""
    module = importlib.import_module(face)
    seen: dict[str, set[str]] = {}
    table: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.level == 1 and line.module:
                    names = [alias.name for alias in line.names]
                    stars = public_names(importlib.import_module(f"{face}.{line.module}")) if names == ["*"] else names
                    seen.setdefault(line.module, set()).update(stars)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "lazy_face":
            table = ast.literal_eval(node.args[1])
    assert seen and seen == {name: set(listed.split()) for name, listed in table.items()}

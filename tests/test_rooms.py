"""The rooms of the package import only downwards (DESIGN.md, "The rooms").

The import graph is read from the source, so that nothing has to be imported: every `import` of every module under
src/weft, those inside functions and under TYPE_CHECKING included.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from weft.machines.vendors import VENDORS

SOURCE = Path(__file__).resolve().parent.parent / "src"
PACKAGE = SOURCE / "weft"

# A room may import the rooms before it.
ROOMS = (
    "base",
    "machines",
    "ops",
    "layouts",
    "targets",
    "ir",
    "view",
    "language",
    "gluon",
    "frontend",
    "analysis",
    "passes",
    "lower",
    "sim",
    "backends",
    "compiler",
    "writing",
    "explain",
    "runtime",
    "compat",
    "checking",
)
# Rooms that must not know each other although the order would allow it.
FORBIDDEN = {
    ("sim", "lower"): "the simulator judges the lowering, so it must not use it",
    ("sim", "passes"): "the simulator judges the passes, so it must not use them",
    ("sim", "frontend"): "the simulator runs lane programs, not Python",
    ("backends", "frontend"): "backends read IR, not Python",
    ("backends", "language"): "backends read IR, not Python",
    ("backends", "passes"): "the compiler runs the passes; a back end gets what comes out of them",
}
# What is always installed with the package: no reason to import it late.
DEPENDENCIES = {"numpy", "ml_dtypes", "xdsl", "llvmlite"}


@dataclass(frozen=True)
class Import:
    """One name imported by one line."""

    file: Path
    line: int
    module: str
    function: str | None
    """The function that the import stands in."""
    name: str = ""
    """What is imported from the module, which may be a module as well."""
    late: bool = False
    """Whether it is by name (`base.load`, `machines.part`), when it is first needed."""

    @property
    def where(self) -> str:
        return f"{self.file.relative_to(SOURCE.parent)}:{self.line}"

    @property
    def room(self) -> str | None:
        """The room that imports; None for the files at the top of the package."""
        parts = self.file.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else None

    @property
    def imported_room(self) -> str | None:
        """The room that is imported, if it is one of ours."""
        parts = self.module.split(".")
        return parts[1] if parts[0] == "weft" and len(parts) > 1 and parts[1] in ROOMS else None


# What loads a module by its name; a vendor's part of a room is one of that room.
LOADERS = ("load", "load_module")
PARTS = ("part", "part_of")
# Tables of names of modules: the faces that load what users ask for, and the registry of vendors.
BY_TABLE = (
    *("__init__.py", "gluon/__init__.py", "gluon/nvidia/hopper.py", "gluon/amd/cdna5.py", "base/faces.py", "cli.py"),
    *("machines/vendors.py", "runtime/interface.py"),
)
# Modules that are the user's, or that stand for Triton's.
OF_OTHERS = ("runtime/settings.py", "compat/finder.py", "compat/path/triton/__init__.py")


def _late(call: ast.Call) -> str:
    """The module of Weft's that a call loads; "" for one that loads none, or by a table."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    given = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
    if name in LOADERS and isinstance(given, str):
        return given
    return f"weft.{given}" if name in PARTS and given in ROOMS else ""


@functools.cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def _imports(file: Path) -> Iterator[Import]:
    relative = file.relative_to(SOURCE).with_suffix("").parts
    package = relative[:-1]  # a module's package; for __init__ the package itself

    def visit(node: ast.AST, function: str | None) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from visit(child, child.name)
                continue
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(file, child.lineno, alias.name, function)
            elif isinstance(child, ast.Call) and (late := _late(child)):
                yield Import(file, child.lineno, late, function, late=True)
            elif isinstance(child, ast.ImportFrom):
                base = ".".join(package[: len(package) - child.level + 1]) if child.level else ""
                module = ".".join(filter(None, (base, child.module)))
                for alias in child.names:
                    whole = f"{module}.{alias.name}" if module == "weft" else module
                    yield Import(file, child.lineno, whole, function, alias.name)
            yield from visit(child, function)

    yield from visit(_tree(file), None)


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    files = sorted(PACKAGE.rglob("*.py"))
    assert files, f"no source under {PACKAGE}"
    return [found for file in files for found in _imports(file)]


def _fail_on(problems: list[str]) -> None:
    assert not problems, "\n" + "\n".join(problems)


def test_every_folder_is_a_room() -> None:
    folders = {p.parent.relative_to(PACKAGE).parts[0] for p in PACKAGE.glob("*/**/*.py")}
    _fail_on([f"src/weft/{name} is not in the list of rooms" for name in sorted(folders - set(ROOMS))])


def test_no_back_edges(imports: list[Import]) -> None:
    problems = []
    for found in imports:
        room, other = found.room, found.imported_room
        if room is None or other is None or room == other:
            continue
        if found.late and str(found.file.relative_to(PACKAGE)) in BY_TABLE:
            continue
        if ROOMS.index(other) > ROOMS.index(room):
            problems.append(f"{found.where}: `{room}` imports `{found.module}`, but `{other}` comes after `{room}`")
        elif (room, other) in FORBIDDEN:
            problems.append(f"{found.where}: `{room}` imports `{found.module}`: {FORBIDDEN[room, other]}")
    _fail_on(problems)


def test_the_page_says_what_each_layer_imports(imports: list[Import]) -> None:
    """docs/explanation/architecture.md has the rooms in their order, each with those that it imports."""
    page = (SOURCE.parent / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    told = {
        name: others.split(", ")
        for name, others in re.findall(r"^\| `(\w+)/` \| .* \| ([\w, ]*)\|$", page, re.MULTILINE)
    }
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for each in imports:
        by_table = each.late and str(each.file.relative_to(PACKAGE)) in BY_TABLE
        if each.room in found and each.imported_room and each.imported_room != each.room and not by_table:
            found[each.room].add(each.imported_room)
    assert list(told) == list(ROOMS)
    for room, others in found.items():
        assert [other.strip() for other in told[room] if other.strip()] == [r for r in ROOMS if r in others], room


def _module(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _ring(edges: dict[str, dict[str, str]]) -> list[str]:
    """The places of the imports of one ring, if there is any."""
    left = dict(edges)
    while outside := [m for m, others in left.items() if not others.keys() & left.keys()]:
        for module in outside:
            del left[module]
    path = list(left)[:1]
    while path:
        path.append(next(m for m in left[path[-1]] if m in left))
        if path[-1] in path[:-1]:
            path = path[path.index(path[-1]) :]
            return [f"{edges[a][b]}: `{a}` imports `{b}`" for a, b in pairwise(path)]
    return []


def test_no_rings_within_rooms(imports: list[Import]) -> None:
    """Not for types either: what two modules need of each other stands in a third one."""
    edges: dict[str, dict[str, str]] = {_module(file): {} for file in PACKAGE.rglob("*.py")}
    for found in imports:
        if found.late:
            continue
        module, whole = _module(found.file), f"{found.module}.{found.name}"
        imported = whole if whole in edges else found.module
        if imported in edges and imported != module and found.room == found.imported_room:
            edges[module][imported] = found.where
    _fail_on(_ring(edges))


def test_rings_are_found() -> None:
    assert _ring({"a": {"b": "1"}, "b": {"c": "2"}, "c": {}, "d": {"a": "3"}}) == []
    ring = _ring({"a": {"b": "a.py:1"}, "b": {"c": "b.py:2"}, "c": {"b": "c.py:3"}})
    assert sorted(ring) == ["b.py:2: `b` imports `c`", "c.py:3: `c` imports `b`"]


def test_no_room_imports_the_public_face(imports: list[Import]) -> None:
    """`weft/__init__.py` wires everything; a room that imported it would depend on all of it."""
    _fail_on(
        [
            f"{i.where}: `{i.room}` imports `{i.module}`, the face of the whole package"
            for i in imports
            if i.room is not None
            and i.module.partition(".")[0] == "weft"
            and i.imported_room is None
            and i.module not in ("weft.__version__", "weft._version")
        ]
    )


OF_EXTRAS = {"cuda", "matplotlib", "pandas", "pyopencl", "rich", "torch"}
"""What the extras for users bring (tests/test_extras.py)."""
OF_USERS_OWN = {"pytest", "redis", "triton"}
"""What no extra brings: pytest has the plugin, the others stand where Triton has them."""


def test_imports_in_functions_are_optional_packages(imports: list[Import]) -> None:
    problems = []
    for found in imports:
        if found.late or found.function is None or found.function == "__getattr__":  # lazy names of a face
            continue
        top = found.module.partition(".")[0]
        if top in ("weft", "") or top in DEPENDENCIES or top in sys.stdlib_module_names:
            problems.append(f"{found.where}: `{found.module}` is imported inside `{found.function}`")
        elif top not in OF_EXTRAS | OF_USERS_OWN:
            problems.append(f"{found.where}: no extra of pyproject.toml brings `{top}`")
    _fail_on(problems)


def test_only_the_frontend_knows_syntax_trees(imports: list[Import]) -> None:
    problems = []
    for found in imports:
        reads_source = (PACKAGE / "language" / f"{name}.py" for name in ("callable", "definitions", "references"))
        inside = found.room == "frontend" or found.file in reads_source
        if found.module.partition(".")[0] == "ast" and not inside:
            problems.append(f"{found.where}: `ast` is imported outside the frontend")
    _fail_on(problems)


def test_only_backends_know_llvmlite(imports: list[Import]) -> None:
    problems = []
    for found in imports:
        if found.module.partition(".")[0] == "llvmlite" and found.room != "backends":
            problems.append(f"{found.where}: `llvmlite` is imported outside the backends")
    _fail_on(problems)


def _touches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that read or write files, or look at the environment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield node.lineno, "open"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            # names of files are only texts, and a fork is neither file nor environment
            if node.attr not in ("path", "sep", "PathLike", "fspath", "register_at_fork"):
                yield node.lineno, f"os.{node.attr}"
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            if module in ("ctypes", "pathlib", "shutil", "tempfile"):
                yield node.lineno, module


def test_only_runtime_and_backends_touch_files_and_the_environment() -> None:
    problems = []
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE).parts
        named_by_users = parts == ("explain", "saving.py")
        if len(parts) > 1 and parts[0] not in ("runtime", "backends", "compat", "checking") and not named_by_users:
            for line, what in _touches(_tree(file)):
                problems.append(f"{file.relative_to(SOURCE.parent)}:{line}: `{what}` in the room `{parts[0]}`")
    _fail_on(problems)


def test_compiling_for_the_cpu_loads_nothing_of_gpus() -> None:
    """Layouts and instruction tables take longer to import than a small kernel to compile."""
    code = (
        "import sys, weft.runtime, weft.compiler.stages; "
        "print([m for m in ('weft.layouts', 'weft.targets.nvidia', 'weft.lower', 'weft.sim') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_modules_are_loaded_by_name_in_one_place() -> None:
    """`base.load` is the one; whoever calls it says the whole name, so that the rules above see it."""
    problems = []
    for file in sorted(PACKAGE.rglob("*.py")):
        name = str(file.relative_to(PACKAGE))
        for node in ast.walk(_tree(file)):
            if not isinstance(node, ast.Call) or name in OF_OTHERS:
                continue
            given = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else "weft"
            if ast.unparse(node.func) == "importlib.import_module" and name != "base/faces.py":
                if str(given).partition(".")[0] == "weft":
                    problems.append(f"{name}:{node.lineno}: {ast.unparse(node)}; `base.load` does that")
            elif isinstance(node.func, ast.Name) and node.func.id in LOADERS and given == "weft":
                if name not in BY_TABLE and node.args:
                    problems.append(f"{name}:{node.lineno}: {ast.unparse(node)} does not say which module")
    _fail_on(problems)


# Rooms in which vendors are names that users write: `gl.nvidia.hopper`, `triton.backends.nvidia`, layouts by name.
OF_USERS = ("gluon", "compat", "layouts")


def test_only_a_vendor_imports_what_is_a_vendors(imports: list[Import]) -> None:
    problems = []
    for found in imports:
        vendors = VENDORS.keys() & set(found.module.split(".")[2:])
        own = vendors & set(found.file.parts)
        if vendors and found.imported_room not in OF_USERS and not own:
            problems.append(f"{found.where}: `{found.module}` is {vendors.pop()}'s")
    _fail_on(problems)

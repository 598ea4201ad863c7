"""A back end of a package that Weft knows nothing of joins by its entry point; vendors are named in their folders."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from weft.machines.vendors import VENDORS

ACME = Path(__file__).with_name("acme")
ROOT = Path(__file__).resolve().parents[2]
SOURCE, ADDING = ROOT / "src" / "weft", ROOT / "docs" / "adding.md"
WORDS = re.compile(
    r"(?i)ptx|nvvm|nvptx|cubin|sass\b|wgmma|mbarrier|[ls][dt]matrix|\bcp\.async|setmaxnreg|mma\.sync|prmt|shfl|nvidia|"
    r"amdgcn|waitcnt|ds_(read|write)|mfma|\bamd\b|spirv|\bspir_|dpas|\bintel\b|\bsm_\d"
)
SEEN = {
    "layouts": "names of layouts that users write",
    "view": "names of layouts that users write",
    "gluon": "names of Gluon's",
    "compat": "names of Triton's",
    "ir/gpu": "operations and attributes of Triton's layout IR, in its text",
    "compiler/options.py": "options of a launch, by Triton's names",
    "runtime/knobs.py": "settings, by Triton's names",
    "runtime/settings.py": "settings, by Triton's names",
    "runtime/compiling.py": "keys of `asm`, which can be dumped",
    "runtime/simulate.py": "keys of `asm`",
    "runtime/testing.py": "a program of the user's that is asked for clocks",
    "machines/vendors.py": "the registry",
}
"""Files and rooms outside of vendors' folders that have words of a vendor, because users see them."""
SENTENCE = 4
"""Words from which on a text is a message."""
PUBLIC = "PTXASError"
"""An error of Triton's that users catch."""


def words(file: Path) -> Iterator[str]:
    """What of a file's code is a vendor's: names and texts, not what is said in docstrings and messages."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            found = node.value if len(node.value.split()) < SENTENCE else ""
        else:
            found = getattr(node, "attr", "") or getattr(node, "id", "") or getattr(node, "name", "") or ""
        if isinstance(found, str) and WORDS.search(found.replace(PUBLIC, "")):
            yield f"{file.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}: {found[:60]!r}"


def test_no_word_of_a_vendor_stands_outside_its_folders() -> None:
    found, used = [], set()
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        if VENDORS.keys() & set(parts):
            continue
        name = str(file.relative_to(SOURCE))
        exception = next((x for x in SEEN if name == x or name.startswith(f"{x}/")), None)
        here = list(words(file))
        if here and exception is not None:
            used.add(exception)
        elif here:
            found += here
    assert found == []
    assert used == set(SEEN), "exceptions that are none any more"


def run(tmp_path: Path, *checks: str) -> None:
    """Run kernels for Acme's GPU where the path begins with a folder."""
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, ACME / "run.py", *checks], capture_output=True, text=True, env=environment)
    assert done.stdout.endswith("acme\n"), done.stderr


def test_a_back_end_joins_by_its_entry_point(tmp_path: Path) -> None:
    shutil.copytree(ACME / "acme_weft", tmp_path / "acme_weft", ignore=shutil.ignore_patterns("__pycache__"))
    installed = tmp_path / "acme_weft-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-weft\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[weft.backends]\nacme = acme_weft:BACKEND\n")
    run(tmp_path)


PLACES = {
    "rows": "machines/nvidia.py",
    "instructions": "targets/nvidia/__init__.py",
    "dialect": "backends/nvidia/dialect.py",
    "driver": "backends/nvidia/driver.py",
    "host": "backends/nvidia/host.py",
    "counted": "backends/nvidia/counted.py",
    "__init__": "compiler/nvidia/__init__.py",
}
"""Where the files of Acme's package stand if it is one of Weft's own vendors, by the example of NVIDIA's."""


def test_a_vendor_in_the_tree_is_its_own_files_and_a_line_of_the_registry(tmp_path: Path) -> None:
    """As docs/adding.md says: no other file of the tree is touched."""
    listed = re.findall(r"^\| `((?:machines|targets|backends|compiler)/nvidia[^`]*)`", ADDING.read_text(), re.MULTILINE)
    assert len(listed) == 5 and set(listed) <= set(PLACES.values())
    shutil.copytree(SOURCE, tmp_path / "weft")
    places = {name: place.replace("nvidia", "acme") for name, place in PLACES.items()}
    for name, place in places.items():
        text = (ACME / "acme_weft" / f"{name}.py").read_text()
        for other, its in places.items():
            module = its.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            text = text.replace(f"from .{other} import", f"from weft.{module} import")
        file = tmp_path / "weft" / place
        assert not file.exists()
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    registry = tmp_path / "weft" / "machines" / "vendors.py"
    line = '        "intel": "machines",\n'
    registry.write_text(registry.read_text().replace(line, f'{line}        "acme": "machines targets compiler",\n'))
    run(tmp_path, "rows", "matmul", "driver")
    problems = rooms_of(tmp_path)
    assert not problems.returncode, problems.stdout


def rooms_of(tree: Path) -> subprocess.CompletedProcess[str]:
    """The tests of rooms that have to do with vendors, in a copy of the tree."""
    (tree / "src").symlink_to(tree)
    (tree / "tests").mkdir()
    shutil.copy(Path(__file__).parents[1] / "test_rooms.py", tree / "tests")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tree), "-k", "back_edges or vendor or rings_within"]
    command = [sys.executable, "-m", "pytest", *options, "tests/test_rooms.py"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)

"""A back end of a package that Weft knows nothing of joins by its entry point; vendors are named in their folders."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from weft.machines.vendors import VENDORS

ACME = Path(__file__).with_name("acme")
ROOT = Path(__file__).resolve().parents[2]
SOURCE, ADDING = ROOT / "src" / "weft", ROOT / "docs" / "howto" / "adding.md"
WORDS = re.compile(
    r"(?i)ptx|nvvm|cubin|sass(?![a-z])|wgmma|mbarrier|[ls][dt]matrix|cp\.async|setmaxnreg|mma\.sync|prmt|shfl|nvidia|cuda|"
    r"tcgen|tmem|hopper|blackwell|ampere|warp_?group|globaltimer|smid|__nv_|mov\.|ttng|(?<![a-z])(?:tma|sm_)(?![a-z])|"
    r"amdgcn|waitcnt|ds_(?:read|write)|mfma|rocm|gfx|__ocml|(?<![a-z])(?:amdg?|hip|[cr]dna)(?![a-z])|"
    r"spirv|(?<![a-z])spir_|dpas|intel|oneapi|(?<![a-z])xpu(?![a-z])|(?<![a-z])(?:nv|w)?mma(?![a-z])"
)
"""What PTX, GCN and SPIR-V, processors, vendors and their libraries are called."""
SEEN = Path(__file__).with_name("words.txt")
"""Words of a vendor that users see, by file."""
SENTENCE = 4
"""Words from which on a text is a message."""


def words(file: Path) -> set[str]:
    """What of a file's code is a vendor's: in names and texts, not in what is said in docstrings and messages."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    seen: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            is_text = isinstance(node.value, str) and id(node) not in said and len(node.value.split()) < SENTENCE
            seen.add(str(node.value) if is_text else "")
        else:
            seen.update(str(getattr(node, field, "")) for field in ("attr", "id", "name", "arg"))
    return {word.lower() for text in seen for word in WORDS.findall(text)}


def listed() -> dict[str, set[str]]:
    """What words.txt says: the words of each file."""
    lines = (line.partition("#") for line in SEEN.read_text(encoding="utf-8").splitlines())
    parts = [(before.split(), reason.strip()) for before, _, reason in lines if before.strip()]
    assert all(reason for _, reason in parts)
    return {name: set(found) for (name, *found), _ in parts}


def test_no_word_of_a_vendor_stands_outside_its_folders() -> None:
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE)
        if not VENDORS.keys() & set(name.with_suffix("").parts) and (here := words(file)):
            found[str(name)] = here
    seen = listed()
    new = {name: here - seen.get(name, set()) for name, here in found.items()}
    assert {name: here for name, here in new.items() if here} == {}, "a vendor's words outside its folders"
    gone = {name: here - found.get(name, set()) for name, here in seen.items()}
    assert {name: here for name, here in gone.items() if here} == {}, "words that are listed and none any more"


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


@pytest.mark.slow
def test_a_vendor_in_the_tree_is_its_own_files_and_a_line_of_the_registry(tmp_path: Path) -> None:
    """As docs/howto/adding.md says: no other file of the tree is touched."""
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
    line = '        "intel": "machines ir targets passes lower sim compiler",\n'
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

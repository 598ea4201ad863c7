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

ACME = Path(__file__).with_name("acme")
SOURCE = Path(__file__).resolve().parents[2] / "src" / "weft"
VENDORS = {"nvidia", "amd", "intel"}
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
        if VENDORS & set(parts):
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


def test_a_back_end_joins_by_its_entry_point(tmp_path: Path) -> None:
    shutil.copytree(ACME / "acme_weft", tmp_path / "acme_weft", ignore=shutil.ignore_patterns("__pycache__"))
    installed = tmp_path / "acme_weft-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-weft\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[weft.backends]\nacme = acme_weft:BACKEND\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "WEFT_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, ACME / "run.py"], capture_output=True, text=True, env=environment)
    assert done.stdout.endswith("acme\n"), done.stderr

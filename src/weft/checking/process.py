"""One of the processes of a check: started with messages in a file, and what it sent when it has ended.

What goes in and comes out are files without names, so that neither side waits for the other, and nobody can write to
them after the end: the keeper leaves nothing running.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from weft.base import LaunchError, progress

from .frames import Broken, Message, received

__all__ = ["Ended", "Limits", "run"]

PACKAGE = Path(__file__).resolve().parents[1]
KEEPER = str(Path(__file__).with_name("keeper.py"))
ENTER = "import sys; sys.path[:] = {path!r}; from weft.checking.enter import enter; enter({settings!r})"
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "CUDA_HOME", "TZ")
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev", "/opt")
"""What every program reads."""
SHOWN = 4000
"""Characters of what a process printed that are kept."""


@dataclass(frozen=True)
class Limits:
    """What each process of a check may take."""

    seconds: float = 60.0
    memory: int = 4 << 30
    """Bytes."""
    processes: int = 64


@dataclass
class Ended:
    """How a process ended, and what it sent and printed before."""

    end: str
    """"exit", "signal", "time", "memory", "processes", or "killed" where the keeper itself was."""
    code: int
    seconds: float
    messages: list[Message]
    broken: str
    """Why not all that it sent could be read; "" where it could."""
    printed: str

    @property
    def confined(self) -> dict[str, bool]:
        """Which parts of the machine it was kept from."""
        for message in self.messages[:1]:
            if message.kind == "confined":
                return {name: message.facts.get(name) is True for name in ("files", "signals", "network")}
        return {}


def run(
    role: str,
    settings: Mapping[str, Any],
    write: Callable[[BinaryIO], None],
    limits: Limits,
    readable: Sequence[str] | None,
) -> Ended:
    """Run the `main` of the module `role` to its end; it reads what `write` writes, and is confined to `readable`.

    None leaves it unconfined. LaunchError where there are no such limits, on Windows.
    """
    if sys.platform == "win32":
        raise LaunchError(
            "a check needs limits of time and memory for processes, which Weft sets on Linux and macOS",
            hint="run weft check in WSL, or in a container",
        )
    with (
        tempfile.TemporaryDirectory(prefix="weft-check-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as request,
        tempfile.TemporaryFile() as result,
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as status,
    ):
        write(request)
        request.flush()
        request.seek(0)
        paths = [*import_paths(), *filter(os.path.isdir, readable or ())]
        reads = None if readable is None else [*SYSTEM, *paths, *_of_python(), *readable]
        known = {**settings, "role": role, "result": result.fileno(), "readable": reads, "folder": folder}
        argv = [sys.executable, "-I", "-c", ENTER.format(path=paths, settings=json.dumps(known))]
        started = {"cwd": folder, "env": _environment(folder), "stdin": request, "stdout": printed, "stderr": printed}
        end = _kept(f"checking, {role}", argv, started, limits, result, status)
        result.seek(0)
        messages, broken = [], ""
        try:
            for message in received(result):
                messages.append(message)
        except Broken as error:
            broken = str(error)
        printed.seek(0)
        text = printed.read(SHOWN).decode("utf-8", "replace")
        return Ended(end["end"], int(end.get("code", 0)), float(end.get("seconds", 0)), messages, broken, text)


def _kept(
    what: str, argv: list[str], started: dict[str, Any], limits: Limits, result: Any, status: Any
) -> dict[str, Any]:
    """Run under a keeper."""
    wanted = {**vars(limits), "argv": argv, "status": status.fileno()}
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", KEEPER, json.dumps(wanted)],
        pass_fds=(result.fileno(), status.fileno()),
        start_new_session=True,
        **started,
    )
    try:
        with progress(what) as told:
            while keeper.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    keeper.wait(0.2)
                told()
    finally:
        if keeper.poll() is None:  # this process was interrupted
            keeper.terminate()
            keeper.wait()
    status.seek(0)
    try:
        end: dict[str, Any] = json.loads(status.read())
    except ValueError:
        end = {"end": "killed"}
    return end


def import_paths() -> list[str]:
    """Where modules are found: what is installed, and not what lies in the folder where this runs."""
    here = {"", os.getcwd()}
    installed = [entry for entry in sys.path if entry not in here and os.path.exists(entry)]
    return [*dict.fromkeys([str(PACKAGE.parent), *installed])]


def _of_python() -> list[str]:
    """Where the interpreter and its libraries are."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return [sys.prefix, sys.base_prefix, sys.exec_prefix, *(sysconfig.get_path(name) for name in names)]


def _environment(folder: str) -> dict[str, str]:
    """What a process knows of its surroundings: settings of Weft's, no GPU, and a folder of its own."""
    env = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith("WEFT_")}
    for name in ("WEFT_TARGET", "WEFT_CACHE_DIR", "WEFT_DUMP"):
        env.pop(name, None)
    own = dict.fromkeys(("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME"), folder)
    cache = os.path.join(folder, "cache")
    return env | own | {"WEFT_CACHE_DIR": cache, "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}

"""Compare what every kernel compiles to with `digests.txt`, or write that file anew.

    make digests                # which kernels compile to something else, and which stage of them changed first
    make digests UPDATE=1       # rewrite tests/digests/digests.txt
    make digests ONLY=matmul    # those whose name has that in it

A digest does not depend on where the tree lies, on lines and columns of sources, or on the processor. LLVM decides the
PTX: with another llvmlite than the file's (its first line says which) PTX is not compared.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

from weft.base import WeftError

from .compiled import NAMES, TARGETS, texts

STORED = Path(__file__).resolve().parent / "digests.txt"
HEAD = "# made with llvmlite {}, by: make digests UPDATE=1\n"
LENGTH = 6

PLACES = (
    (re.compile(r"(?:,? !dbg !\d+)|^!.*$|^ *#dbg.*$", re.MULTILINE), ""),  # debug information in LLVM IR
    (re.compile(r"\[\d+ x i8\] c\"(?:[^\"\\]|\\.)*\"|\d+ x i8\]"), "bytes"),  # messages, which name source lines
    (re.compile(r"^\s*\.(?:loc|file|section)\b.*$|^\$L__tmp\d+:$|//.*$", re.MULTILINE), ""),  # the same in PTX
    (re.compile(r"\.b8 (\S+?)\[\d+\] = \{[^}]*\}"), r".b8 \1"),
    (re.compile(r"[^\s\"']*\.py(?::\d+)*"), "source.py"),
    (re.compile(r"\bloc\(.*\)"), ""),
    (re.compile(r"^\s+", re.MULTILINE), ""),
)
"""What is left out of a text, as it says where a source stands or what it is called."""


def digest(text: str) -> str:
    """The digest of a text of any stage."""
    for pattern, instead in PLACES:
        text = pattern.sub(instead, text)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:LENGTH]


def line_of(name: str, target: str) -> str:
    """The line of a kernel and target; empty where the kernel is not for the target."""
    digests: dict[str, str] = {}
    try:
        for stage, text in texts(name, target):
            digests[stage] = digest(text)
    except WeftError as error:
        digests["refused"] = type(error).__name__
    simulated, emitted = digests.pop("sim", ""), digests.pop("emitted", "")
    if simulated:  # what is simulated, and what would be run on a GPU if it were that
        same = (simulated, emitted) == (digests["lane"], digests["llir"])
        digests["sim"] = "same" if same else simulated
    told = [f"{k}={digests[k]}" for k in ("ttir", "lane", "sim", "llir", "ptx", "refused") if k in digests]
    return " ".join((name, target, *told)) if told else ""


def lines_of(name: str) -> list[str]:
    """Those of a kernel."""
    return [line for target in TARGETS if (line := line_of(name, target))]


def _parsed(lines: Iterable[str]) -> dict[str, dict[str, str]]:
    """The stages and their digests by kernel and target."""
    found = {}
    for line in lines:
        name, target, *stages = line.split()
        found[f"{name} {target}"] = dict(stage.split("=") for stage in stages)
    return found


def stored() -> tuple[str, dict[str, dict[str, str]]]:
    """The version of llvmlite of the file, and what is in it."""
    head, *lines = STORED.read_text(encoding="utf-8").splitlines()
    return head.split()[4].rstrip(","), _parsed(lines)


def changes(made: Iterable[str], known: dict[str, dict[str, str]], *, ptx: bool = True) -> Iterator[tuple[str, str]]:
    """(kernel and target, the first stage that is another) of what was made."""
    for name, stages in _parsed(made).items():
        old = known.get(name, {})
        order = [*stages, *(stage for stage in old if stage not in stages)]
        for stage in order:
            if stages.get(stage) != old.get(stage) and (ptx or stage != "ptx"):
                yield name, stage if name in known else "new"
                break


def main() -> int:
    """Whether something changed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="", help="kernels with this in their name; with --update their lines alone")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    names = [name for name in NAMES if given.only in name]
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        made = [line for lines in pool.map(lines_of, names, chunksize=8) for line in lines]
    by, known = stored()
    same_llvm = by == version("llvmlite")
    if given.update and given.only and not same_llvm:
        parser.error(f"the file is of llvmlite {by}, here is {version('llvmlite')}: update all of it, without --only")
    if given.update:
        lines = {" ".join(line.split()[:2]): line for line in made}
        _, *before = STORED.read_text(encoding="utf-8").splitlines()
        kept = before if given.only else made
        written = [lines.get(" ".join(line.split()[:2]), line) for line in kept]
        STORED.write_text(HEAD.format(version("llvmlite")) + "\n".join(written) + "\n", encoding="utf-8")
        print(f"{len(made)} digests written")
        return 0
    found = list(changes(made, known, ptx=same_llvm))
    gone = known.keys() - _parsed(made).keys() if not given.only else set()
    for name, stage in (*found, *((name, "gone") for name in sorted(gone))):
        print(f"{name}: {stage}")
    counts = Counter(stage for _, stage in found)
    told = ", ".join(f"{n} first in {stage}" for stage, n in counts.most_common())
    print(f"{len(made)} of {len(known)} compared, {len(found) + len(gone)} changed{f': {told}' if told else ''}")
    if not same_llvm:
        print(f"PTX was not compared: the file is of llvmlite {by}, here is {version('llvmlite')}")
    return int(bool(found or gone))


if __name__ == "__main__":
    sys.exit(main())

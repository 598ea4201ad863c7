"""Compile time, start-up and a warm launch of this tree against another commit's.

    python benchmarks/compile_against.py 436639b [--target cuda:90] [--rounds 5] [--only softmax] [--every 2]

The other commit is unpacked into a temporary folder; or it is the name of a folder with `src` and `tests` in it. One
process of each tree has everything imported, and the two compile the kernels of tests/kernels in turns, kernel by
kernel, with nothing read from a cache or written to one: from the call of `weft.compile` to PTX or the object (ptxas is
not called). A kernel counts if both trees have it in the same words and compile it. For start-up, new processes of both
trees are started in turns. What is counted is time of the processor, on which other work on the machine has less
influence, and of each figure the least of all rounds.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import redirect_stdout
from math import exp, log
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LAUNCHES = 2000
"""Warm launches that are timed as one."""


class Worker:
    """A process of one tree that answers questions, `serve` of them."""

    def __init__(self, tree: Path, target: str, cache: Path) -> None:
        command = [sys.executable, __file__, "--serve", "--target", target]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment(tree, cache), stdin=pipe, stdout=pipe, text=True)

    def ask(self, question: str) -> Any:
        """What the process answers."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(question, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        """No more questions."""
        self.process.communicate()


def environment(tree: Path, cache: Path) -> dict[str, str]:
    """The variables of a process that runs a tree, which keeps the bytecode of its modules as an installed one does."""
    path = [str(tree / "src"), str(tree / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(path), "WEFT_CACHE_DIR": str(cache)}
    own |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{cache}-bytecode"}
    return {**os.environ, **own}


def serve(target: str) -> None:
    """Answer: `kernels` with their digests, `launch` with the seconds of a warm one, a kernel's name with the seconds
    that it takes to compile, or with null where it is refused."""
    import first_launch
    import weft
    from kernels import load_cases
    from weft.runtime import knobs

    knobs.cache.disabled = True  # now that the script of one launch is in it
    cases, answers = load_cases("weft"), sys.stdout
    gc.freeze()

    def launch() -> float:
        x, out, add = first_launch.x, first_launch.out, first_launch.add
        begin = time.process_time()
        for _ in range(LAUNCHES):
            add[(1,)](x, x, out, 1000, BLOCK=1024)
        return (time.process_time() - begin) / LAUNCHES

    def compiled(name: str) -> float | None:
        case = cases[name]
        types, values, attributes = case.signature(case.make_inputs())
        source = weft.ASTSource(case.kernel, types, values, attributes)
        gc.collect()  # of what others have left
        begin = time.process_time()
        try:
            kernel = weft.compile(source, target, case.options)
            kernel.asm["llir"]
        except weft.WeftError:
            return None
        return time.process_time() - begin

    for line in sys.stdin:
        question = line.strip()
        with redirect_stdout(io.StringIO()):  # some kernels print while they are traced
            if question == "kernels":
                answer: Any = {n: hashlib.sha256(repr(c).encode()).hexdigest() for n, c in texts(cases).items()}
            else:
                answer = launch() if question == "launch" else compiled(question)
        print(json.dumps(answer), file=answers, flush=True)


def texts(cases: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """The kernel, constants and options of every case."""
    return {name: (c.kernel.src, str(sorted(c.constexprs.items())), str(c.options)) for name, c in cases.items()}


def of_a_process(tree: Path, cache: Path, *command: str) -> float:
    """Processor seconds of a new process, the system's included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], env=environment(tree, cache), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def line(what: str, old: float, new: float) -> str:
    """A line of the table, in milliseconds."""
    return f"{what:44} {old * 1e3:10.4g} ms {new * 1e3:10.4g} ms {new / old:8.3f}"


def unpack(commit: str, folder: Path) -> None:
    """What a commit has in src and tests, into a folder."""
    packed = subprocess.run(["git", "-C", ROOT, "archive", commit, "src", "tests"], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=15, help="new processes of each kind and tree")
    parser.add_argument("--only", default="", help="kernels whose names contain this")
    parser.add_argument("--every", type=int, default=1, help="one kernel of so many")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.target)
        return
    with tempfile.TemporaryDirectory() as folder:
        other, caches = Path(folder) / "other", [Path(folder) / "old", Path(folder) / "new"]
        if Path(asked.commit, "src").is_dir():
            other = Path(asked.commit).resolve()
        else:
            unpack(asked.commit, other)
        print(f"{'':44} {asked.commit[:10]:>13} {'this tree':>13} {'ratio':>8}")
        compare(asked, (other, ROOT), caches)


def compare(asked: argparse.Namespace, trees: tuple[Path, Path], caches: list[Path]) -> None:
    """Ask processes of both trees, in turns, and print what they say."""
    workers = [Worker(tree, asked.target, cache) for tree, cache in zip(trees, caches, strict=True)]
    known = [worker.ask("kernels") for worker in workers]
    names = [name for name in sorted(known[1]) if known[0].get(name) == known[1][name] and asked.only in name]
    least: dict[str, list[float]] = {}
    for name in names[:: asked.every]:
        if None not in [worker.ask(name) for worker in workers]:  # a first time, which counts for nothing
            least[name] = [1e9, 1e9]
    launches = [1e9, 1e9]
    for turn in range(asked.rounds):
        for name, times in [*least.items(), ("launch", launches)]:
            for k in (0, 1) if turn % 2 else (1, 0):
                times[k] = min(times[k], workers[k].ask(name))
    for worker in workers:
        worker.end()
    for name, (old, new) in least.items():
        print(line(name, old, new))
    if least:
        ratios = sorted(new / old for old, new in least.values())
        old, new = (sum(times[k] for times in least.values()) for k in (0, 1))
        print(line(f"all {len(least)} kernels for {asked.target}", old, new))
        mean = exp(sum(map(log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.4f}, {ratios[0]:.3f} to {ratios[-1]:.3f}")
    print(line("a warm launch", *launches))
    script = str(Path(__file__).with_name("first_launch.py"))
    for what, command in (("import weft", ("-c", "import weft")), ("a script of one cached launch", (script,))):
        starts = [1e9, 1e9]
        for turn in range(asked.starts):
            for k in (0, 1) if turn % 2 else (1, 0):
                starts[k] = min(starts[k], of_a_process(trees[k], caches[k], *command))
        if asked.starts:
            print(line(what, *starts))


if __name__ == "__main__":
    main()

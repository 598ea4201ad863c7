"""Count the lines of the source: of Python those that have a token, without comments, docstrings and blank lines; of
LLVM IR (`.ll`) and of data in text files (`.txt`) those that are neither blank nor a comment, each for itself.

python tools/lines_of_code.py                  # of src/weft
python tools/lines_of_code.py src/weft/sim     # of a folder or a file
python tools/lines_of_code.py --rooms          # of each folder of src/weft, and the sum
python tools/lines_of_code.py --at COMMIT      # of all this at another commit of the repository
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
KINDS = {".py": "lines of code", ".ll": "lines of LLVM IR", ".txt": "lines of data in text files"}
COMMENTS = {".ll": ";", ".txt": "#"}


def docstrings(tree: ast.AST) -> set[int]:
    """The lines of strings that are statements."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def lines_of_code(text: str) -> int:
    """How many lines of a file's text are code.

    >>> lines_of_code('"A module."' + chr(10) + "x = (1,  # one" + chr(10) + chr(10) + "     2)" + chr(10))
    2
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings(ast.parse(text)))


def lines_but(comment: str, text: str) -> int:
    """How many lines are neither blank nor a comment.

    >>> lines_but(";", chr(10).join(["; Nothing.", "", "ret void ; done"]))
    1
    """
    return sum(bool(line.strip()) and not line.lstrip().startswith(comment) for line in text.splitlines())


def counted(paths: Iterable[Path]) -> dict[str, int]:
    """How many lines of each kind some files have, or all files below some folders."""
    counts = dict.fromkeys(KINDS, 0)
    for path in paths:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.suffix in KINDS:
                text = file.read_text(encoding="utf-8")
                is_python = file.suffix == ".py"
                counts[file.suffix] += lines_of_code(text) if is_python else lines_but(COMMENTS[file.suffix], text)
    return counts


def unpack(commit: str, folder: str) -> None:
    """Put the source at a commit into a folder; ends the program where that cannot be had."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "src"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        sys.exit("--at needs git, which is not installed here")
    if done.returncode:
        sys.exit(f"the source at {commit} cannot be had from git: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def report(root: Path, paths: list[str], rooms: bool) -> None:
    """Print the counts."""
    source = root / "src" / "weft"
    if rooms:
        for path in sorted(source.iterdir()):
            if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__"):
                print(f"{counted([path])['.py']:7,}  {path.name}")
    for suffix, count in counted([root / path for path in paths] or [source]).items():
        print(f"{count:7,}  {KINDS[suffix]}")


def main(given: list[str]) -> None:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="lines_of_code.py", description="Count the lines of the source.")
    parser.add_argument("paths", nargs="*", help="folders or files of the repository; src/weft if none is given")
    parser.add_argument("--rooms", action="store_true", help="the lines of code of each folder of src/weft, too")
    parser.add_argument("--at", metavar="COMMIT", help="at another commit of the repository")
    asked = parser.parse_args(given)
    if asked.at is None:
        report(ROOT, asked.paths, asked.rooms)
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack(asked.at, folder)
        report(Path(folder), asked.paths, asked.rooms)


if __name__ == "__main__":
    main(sys.argv[1:])

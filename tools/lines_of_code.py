"""Count lines of code: those that have a token, without comments, docstrings and blank lines.

python tools/lines_of_code.py                  # of src/weft
python tools/lines_of_code.py src/weft/sim     # of a folder or a file
python tools/lines_of_code.py --rooms          # of each folder of src/weft, and the sum
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "weft"
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


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


def counted(path: Path) -> int:
    """Lines of code of a file, or of all files below a folder."""
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return sum(lines_of_code(file.read_text(encoding="utf-8")) for file in files)


def main(given: list[str]) -> None:
    """Print the counts."""
    if given == ["--rooms"]:
        for path in sorted(SOURCE.iterdir()):
            if path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__"):
                print(f"{counted(path):7,}  {path.name}")
    print(f"{sum(counted(Path(path)) for path in given if path != '--rooms') or counted(SOURCE):7,}  lines of code")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Count what a vendor of GPUs has cost in code that is no vendor's: lines added plus removed in src, since a commit.

python tools/vendor_lines.py                      # AMD's, since the redesign for any vendor was closed
python tools/vendor_lines.py --since COMMIT --json

Files of the vendor are those in a folder, or of a name, that is the vendor's word (src/weft/backends/amd/hsaco.py,
src/weft/machines/amd.py). Of lines in other files of src a commit is

counted        where it touches a file of the vendor, anywhere in the repository, or names the vendor in its message;
a refactoring  where its message ends in `Digests: unchanged`: every kernel's code for other machines is what it was,
               as `make digests` says; listed, and not counted;
of another subject   otherwise: neither a file of the vendor nor its name; listed, and not counted.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
CLOSED = "dbab3f78"
"""The commit that closed the redesign for more than one vendor."""
WORDS = {
    "amd": r"\b(AMD|HIP|ROCm|gfx\w+|hip)\b",
    "intel": r"\b(Intel|OpenCL|SPIR-V|xpu|opencl)\b",
    "nvidia": r"\b(NVIDIA|CUDA|PTX|cuda)\b",
}
"""How a message names a vendor."""
FOLDERS = {"intel": ("intel", "opencl")}
"""Names of a vendor's folders and files, where it has others than its own."""
KINDS = ("counted", "a refactoring", "of another subject")
UNCHANGED = re.compile(r"^Digests: unchanged$", re.MULTILINE)


@dataclass(frozen=True)
class Commit:
    """One commit's lines in files of src that are not the vendor's."""

    hash: str
    subject: str
    added: int
    removed: int
    kind: str

    @property
    def lines(self) -> int:
        """Added and removed."""
        return self.added + self.removed


def is_own(path: str, vendor: str) -> bool:
    """Whether a file is the vendor's.

    >>> is_own("src/weft/backends/amd/hsaco.py", "amd"), is_own("src/weft/machines/amd.py", "amd")
    (True, True)
    >>> is_own("src/weft/machines/vendors.py", "amd"), is_own("src/weft/machines/opencl.py", "intel")
    (False, True)
    """
    parts = PurePosixPath(path)
    return not {*parts.parts[:-1], parts.stem}.isdisjoint(FOLDERS.get(vendor, (vendor,)))


def commit_of(text: str, vendor: str) -> Commit:
    """What `git log` says of one commit: its hash, its message, and each file's numbers of lines."""
    head, _, numbers = text.partition("\x01")
    name, _, message = head.partition("\n")
    rows = [row.split("\t") for row in numbers.strip().splitlines()]
    paths = [re.sub(r"\{[^}]* => ([^}]*)\}", r"\1", row[2]) for row in rows]  # what is renamed has its new name
    shared = [
        row for row, path in zip(rows, paths, strict=True) if path.startswith("src/") and not is_own(path, vendor)
    ]
    added, removed = (sum(int(row[i]) for row in shared if row[i] != "-") for i in (0, 1))
    if UNCHANGED.search(message):
        kind = KINDS[1]
    elif any(is_own(path, vendor) for path in paths) or re.search(WORDS[vendor], message):
        kind = KINDS[0]
    else:
        kind = KINDS[2]
    return Commit(name, message.partition("\n")[0], added, removed, kind)


def commits(since: str, vendor: str) -> list[Commit]:
    """Those that touch src outside of the vendor's files, the newest first."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%x02%h%n%B%x01", "--numstat", f"{since}..HEAD"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [c for c in (commit_of(part, vendor) for part in text.split("\x02")[1:]) if c.lines]


def main() -> None:
    """Print the three lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vendor", choices=sorted(WORDS), default="amd")
    parser.add_argument("--since", default=CLOSED)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = commits(options.since, options.vendor)
    if options.json:
        print(json.dumps([asdict(commit) for commit in found], indent=1))
        return
    own = f"files and folders named `{options.vendor}`"
    print(f"Lines added plus removed in src outside of {own}, since {options.since}. A commit is counted where it")
    print("touches one of these or names the vendor, unless its message ends in `Digests: unchanged`.")
    for kind in KINDS:
        some = [commit for commit in found if commit.kind == kind]
        added, removed = sum(c.added for c in some), sum(c.removed for c in some)
        print(f"\n{kind}: {added + removed} lines (+{added}, -{removed})")
        for commit in some:
            print(f"  +{commit.added:<4} -{commit.removed:<4} {commit.hash} {commit.subject}")


if __name__ == "__main__":
    main()

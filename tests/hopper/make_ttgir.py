"""Compile the kernels of gluon_sources.py and triton_sources.py with the real Triton (no GPU needed) for cuda:90.

    python tests/hopper/make_ttgir.py            # all
    python tests/hopper/make_ttgir.py matmul     # those whose name contains a word

Each gives tests/data/hopper/<name>.ttgir.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "hopper"


def _sources() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    from hopper import gluon_sources, triton_sources

    for module, make in ((gluon_sources, GluonASTSource), (triton_sources, ASTSource)):
        for name, found in module.SOURCES.items():
            signature = {**found.signature, **dict.fromkeys(found.constexprs, "constexpr")}
            aligned = [i for i, type in enumerate(found.signature.values()) if type.startswith("*")]
            attributes = {(i,): [["tt.divisibility", 16]] for i in aligned}
            yield name, make(found.kernel, signature, found.constexprs, attributes), found.options


def main(words: list[str]) -> int:
    """Write the files; report and count the failures."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
    from make_ttgir import _ttgir

    OUT.mkdir(parents=True, exist_ok=True)
    failures = 0
    for name, source, options in _sources():
        if words and not any(word in name for word in words):
            continue
        try:
            _, text = _ttgir(source, 90, options)
        except Exception as error:  # the report goes on with the next kernel
            failures += 1
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        (OUT / f"{name}.ttgir").write_text(text.replace(str(ROOT / "tests" / "hopper") + "/", ""))
    print(f"{failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

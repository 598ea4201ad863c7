"""Write the layout IR of the test kernels to tests/data/gluon: run it when the frontend's text changes on purpose.

    cd tests && python -m gluon.make_texts

Where Triton is installed, tests/gluon/test_against_triton.py says whether the new texts still mean what Triton's mean.
"""

from __future__ import annotations

from pathlib import Path

from weft.ir import print_module

from .sources import sources, traced

STORED = Path(__file__).resolve().parents[1] / "data" / "gluon"


def main() -> None:
    """Write all files."""
    STORED.mkdir(parents=True, exist_ok=True)
    for name, source in sources("weft").items():
        (STORED / f"{name}.ttgir").write_text(print_module(traced(source)), encoding="utf-8")


if __name__ == "__main__":
    main()

"""A sample of the kernels compiles to what `digests.txt` says; `make digests` compares all of them."""

from __future__ import annotations

import platform
import zlib
from importlib.metadata import version

import pytest

from . import compiled
from .compiled import NAMES
from .run import changes, digest, lines_of, stored

SAMPLE = [name for name in NAMES if zlib.crc32(name.encode()) % 60 == 0]


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="digests of the CPU are for x86-64")
@pytest.mark.parametrize("name", SAMPLE)
def test_compiles_to_what_is_stored(name: str) -> None:
    by, known = stored()
    found = [f"{what}: {stage}" for what, stage in changes(lines_of(name), known, ptx=by == version("llvmlite"))]
    assert not found, "run `make digests`; if the change is meant, `make digests UPDATE=1`"


def test_every_kernel_is_stored() -> None:
    """But for layout IR of other vendors' GPUs, which is for none of the targets."""
    wanted = {name for name in NAMES if not name.startswith("layout_ir/")}
    assert wanted <= {name.split()[0] for name in stored()[1]} <= set(NAMES)


def test_what_is_simulated_is_what_runs_on_a_gpu() -> None:
    """`cuda:N` and `sim:cuda:N` have one lane program: a pass that is added on one side only changes one of the two.

    What is stored holds of this tree as far as `make digests` and the sample above say that nothing changed.
    """
    on_gpu = {name: stages for name, stages in stored()[1].items() if "lane" in stages}
    assert len(on_gpu) > 800
    assert [name for name, stages in on_gpu.items() if stages["sim"] != "same"] == []


def test_digests_say_nothing_of_where_a_source_stands() -> None:
    ptx = '\t.loc\t1 15 15\n\tmov.u32 \t%r9, %ctaid.x;\n\t.file\t1 "/here/a.py"\n'
    assert digest(ptx) == digest('\n\n mov.u32 \t%r9, %ctaid.x;\n .file\t1 "/there/b.py"\n')
    assert digest("  %x1 = add i32 %a, 1, !dbg !7\n!7 = !DILocation(line: 3)") == digest("%x1 = add i32 %a, 1\n")
    assert digest("%x1 = add i32 %a, 1") != digest("%x1 = add i32 %a, 2")


@pytest.mark.parametrize("name", ["kernels/rotary", "kernels/softmax", "gluon/casts", "gluon/gathers"])
def test_checks_are_the_same_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `debug=True` there are checks of values, which know where they stand."""
    monkeypatch.setattr(compiled, "DEFAULTS", {"debug": True})
    made = dict(compiled.texts(name, "cuda:90"))
    assert "check " in made["lane"] or name == "kernels/softmax"
    assert made["lane"] == made["sim"]

"""Every rule finds what it is for in the kernel of its page that was made for it, and nothing in the fixed one.

The pages are docs/reference/findings; `pages` reads and runs the programs that they hold.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft import like
from weft.explain import Explanation
from weft.explain.findings import RULES, page_of

from .kernels import matmul, softmax, transpose
from .pages import CODES, FOLDER, explained, predicted, programs_of, sentence

F32, F16 = like((4096, 4096), "fp32"), like((4096, 4096), "fp16")
NEAR = 0.1
"""How far a predicted time may be from that which a page says: the model of time goes on."""


def rows(stride: int) -> Explanation:
    return transpose.explain(F16, F16, stride, SIZE=64, grid=(64, 64), target="cuda:90")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::weft.base.OffsetOverflowWarning")
@pytest.mark.parametrize("code", CODES)
def test_found_and_fixed(code: str) -> None:
    """Exactly this is found in the one, and nothing in the other; what is predicted is what the page says."""
    failing, fixed = explained(code)
    if code in ("low-occupancy", "spills") and (failing.occupancy is None or failing.occupancy.spills is None):
        pytest.skip("there is no assembler")
    assert {f.code for f in failing.findings} == {code} and fixed.findings == ()
    assert all(f.what and f.why and f.fix and f.page for f in failing.findings)
    assert failing.time is not None and fixed.time is not None
    assert all(f.microseconds is not None or f.no_figure for f in failing.findings)
    assert all(0 <= (f.microseconds or 0) < failing.time.microseconds for f in failing.findings)
    if failing.occupancy is None or failing.occupancy.registers is None:
        return  # without an assembler the model knows less
    numbers = re.compile(r"[\d,.]+(?= us)")
    for said, now in zip(numbers.findall(sentence(code)), numbers.findall(predicted(code)), strict=True):
        assert float(said.replace(",", "")) == pytest.approx(float(now.replace(",", "")), rel=NEAR)


def test_every_rule_has_a_page_with_two_programs() -> None:
    assert sorted(RULES) == CODES
    for code in CODES:
        failing, fixed = programs_of(code)
        assert failing != fixed and page_of(code).startswith(f"# {code}\n")
        assert sentence(code).startswith(("On an H", "On an Intel "))
        for source in (failing, fixed):
            compile(source, code, "exec")
            assert source.rstrip().rpartition("\n")[2].endswith(")") and "e = " in source


def test_the_list_of_findings_has_every_page() -> None:
    text = (Path(FOLDER).parent / "findings.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(findings/([\w-]+)\.md\)", text)) == CODES


def test_a_page_that_is_not_there() -> None:
    with pytest.raises(LookupError, match=r"^\"?there is no finding 'narow-access'; there are author-layout, "):
        page_of("narow-access")


def test_gains_come_in_their_order_and_are_less_than_the_time() -> None:
    e = explained("uncoalesced-access")[0]
    ((gain, why_not),) = [(f.microseconds, f.no_figure) for f in e.findings]
    fixed = explained("uncoalesced-access")[1]
    assert gain is not None and e.time is not None and fixed.time is not None and not why_not
    assert gain == pytest.approx(e.time.microseconds - fixed.time.microseconds, rel=0.1)


def test_a_fix_that_is_an_argument_is_tried() -> None:
    """The gain is then the difference of two predictions, and the change is what `what_if` takes."""
    e, fixed = explained("narrow-access")
    assert [f.change for f in e.findings] == [{"stride": 4104}] * 2
    tried = e.with_fixes()
    assert e.time is not None and fixed.time is not None
    (gain,) = {f.microseconds for f in tried.findings}
    assert gain == pytest.approx(e.time.microseconds - fixed.time.microseconds, abs=0.1)  # of a shorter array
    assert e.again.suggestions(e)[0] == {"stride": 4104}


def test_bank_conflicts_name_lanes_and_the_layout_without_any() -> None:
    """The layout is the one that the fixed kernel of the page has, so that it is compiled and has none."""
    ((finding),) = explained("bank-conflicts")[0].findings
    assert finding.what == "1,048,576 wavefronts of shared memory, 8 times as many as needed"
    assert finding.why == "lanes 0 to 7 of a load want 8 words of bank 0 at once: 8 wavefronts for 1"
    advised = finding.fix.partition(" in place of ")[0]
    assert advised == "gl.SwizzledSharedLayout(4, 4, 8, [1, 0])" and advised in programs_of("bank-conflicts")[1]
    assert finding.fix.endswith("72 wavefronts of a warp become 16")


def test_bank_conflicts_of_a_triton_kernel_are_fixed_by_what_its_author_can_write() -> None:
    """An operand of float32 whose rows do not run along the summed dimension: no layout is named."""
    a = like((256, 256), "fp32")
    e = matmul.explain(a, a, like((256, 256), "fp16"), 256, 256, 256, BM=64, BN=64, BK=32, grid=(4, 4),
                       target="cuda:90", default_dot_input_precision="tf32")  # fmt: skip
    (finding,) = [f for f in e.findings if f.code == "bank-conflicts"]
    assert finding.fix.startswith("store this operand so that its rows run along the dimension that is summed over")


def test_a_good_kernel_has_none() -> None:
    e = softmax.explain(F32, F32, 4096, 1024, BLOCK=1024, grid=(4096 * 16,), target="cuda:90")
    assert e.findings == ()


def test_the_whole_text_of_a_finding() -> None:
    first, second = sorted(rows(4097).findings, key=lambda finding: finding.span.line if finding.span else 0)
    assert first.code == second.code == "narrow-access"
    assert first.what == "a load of 2 bytes at a time, of 16"
    assert first.why == "`stride` is not known to be a multiple of 8 (`stride` = 4097, and 4097 % 8 = 1)"
    assert first.fix == "pad it to 4104, and mask the rest"


def test_a_loop_that_waits_for_narrow_loads_is_fixed_by_wider_ones() -> None:
    a = like((1024, 1024), "fp16")
    e = matmul.explain(
        a, a, a, 1023, 1023, 1023, BM=64, BN=64, BK=32, grid=(16, 16), target="cuda:90", num_warps=4
    )  # rows of 1,023: a thread has one element of two bytes in a row
    waits = [f for f in e.findings if f.code == "not-pipelined"]
    assert [f.fix for f in waits] == ["pad it to 1024, and mask the rest"] * 2

"""What-ifs: a launch explained again with something changed, and the page that offers them."""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import like
from weft.cli_explain import main
from weft.explain import Explanation

from .kernels import transpose
from .test_page import data_of, text


@pytest.fixture(scope="module")
def explained() -> Explanation:
    x = like((4096, 4112), "fp16")
    return transpose.explain(x, x, 4097, SIZE=64, grid=lambda m: (4096 // m["SIZE"],) * 2, target="cuda:90")


def test_one_thing_changed(explained: Explanation) -> None:
    x = like((4096, 4112), "fp16")
    padded = transpose.explain(x, x, 4112, SIZE=64, grid=(64, 64), target="cuda:90")
    assert explained.what_if(stride=4112) == padded
    assert explained.what_if(num_warps=8).options["num_warps"] == 8
    assert explained.what_if(SIZE=32).grid == (128, 128, 1)  # the grid follows
    assert explained.what_if(SIZE=32, grid=(1,)).grid == (1, 1, 1)
    assert explained.what_if(target="cuda:80").target == "cuda:80"


def test_an_alternative_has_alternatives(explained: Explanation) -> None:
    both = explained.what_if(stride=4112).what_if(num_warps=8)
    assert both == explained.what_if(num_warps=8, stride=4112)


def test_what_a_decorator_computes_follows(explained: Explanation) -> None:
    kernel = weft.heuristics({"SIZE": lambda args: 64 if args["stride"] % 16 else 32})(transpose)
    x = like((4096, 4112), "fp16")
    e = kernel.explain(x, x, 4097, grid=(64, 64), target="cuda:90")
    assert e.arguments["SIZE"] == "64" and e.what_if(stride=4112).arguments["SIZE"] == "32"
    assert e.what_if(stride=4112, SIZE=128).arguments["SIZE"] == "128"


def test_one_that_was_read_knows_no_launch(explained: Explanation) -> None:
    read = Explanation.from_json(explained.to_json())
    assert read == explained
    with pytest.raises(ValueError, match="the launch of transpose is not known any more: explain the kernel itself"):
        read.what_if(num_warps=8)
    with pytest.raises(ValueError, match="alternatives need the kernel itself"):
        read.to_html(alternatives=True)
    sent = pickle.loads(pickle.dumps(explained))  # to another process
    assert sent == explained and sent.again is None


def test_suggestions(explained: Explanation) -> None:
    """The fix of what is found, warps and the block by a factor of two, and the divisibility of a stride that is none
    of the fixes; no stages, as there is no loop."""
    assert explained.again.suggestions(explained) == [
        {"stride": 4104}, {"num_warps": 2}, {"num_warps": 8}, {"SIZE": 32}, {"SIZE": 128},
    ]  # fmt: skip
    fixed = explained.what_if(grid=(64, 64), stride=4112)
    fixed.again._grid = (64, 64)
    assert fixed.again.suggestions(fixed) == [{"num_warps": 2}, {"num_warps": 8}, {"stride": 4113}]


def test_the_page_holds_them(explained: Explanation) -> None:
    wanted: list[dict[str, Any]] = [{"stride": 4112}, {"SIZE": 48}, {"num_warps": 8, "stride": 4112}]
    data = data_of(explained.to_html(alternatives=wanted))
    padded, odd, both = data["alternatives"]
    assert [a["label"] for a in (padded, odd, both)] == ["stride=4112", "SIZE=48", "num_warps=8, stride=4112"]
    assert odd["error"] == "arange's range must be a power of 2" and "index" not in odd
    shown = data["explanations"][padded["index"]]
    assert shown["arguments"]["stride"] == "4112" and shown["findings"] == [] and len(data["explanations"]) == 3
    sectors = next(row for row in padded["difference"] if row["what"] == "global load sectors")
    assert (sectors["before"], sectors["after"], sectors["times"]) == ("1,540,096", "1,048,576", "0.68 times")


def test_what_does_not_fit_is_told(explained: Explanation) -> None:
    assert explained.occupancy is not None
    large = replace(explained, occupancy=replace(explained.occupancy, shared_bytes=300_000))
    page = replace(explained, again=lambda changes: large).to_html(alternatives=[{"SIZE": 64}])
    (told,) = data_of(page)["alternatives"]
    assert told["error"] == "a block takes 300,000 bytes of shared memory, there are 232,448"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_alone(explained: Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = sys.modules["weft.base.progress"]
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "_bar", lambda number: None)
    for stream, shown in ((_Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        explained.to_html(alternatives=[{"num_warps": 8}])
        assert ("explaining transpose, alternatives: 0 of 1" in stream.getvalue()) == shown


def test_from_the_command_line(explained: Explanation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, page = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "d.html"
    a.write_text(explained.to_json())
    b.write_text(explained.what_if(stride=4112).to_json())
    assert main(["diff", "--html", str(page), str(a), str(b)]) == 1
    assert capsys.readouterr().err == f"{page} written\n"
    data = data_of(page.read_text(encoding="utf-8"))
    assert [e["arguments"]["stride"] for e in data["explanations"]] == ["4097", "4112"]
    assert main(["explain", "--alternatives", __file__]) == 2
    assert "add --html FILE" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["explain", "--html", "e.html", "--what-if", "8", "script.py"])
    assert "an alternative is written as NAME=VALUE, got '8'" in capsys.readouterr().err


def test_choosing_one(explained: Explanation, chromium: Any, tmp_path: Path) -> None:
    """An alternative that is chosen takes the place of the present one, with what is other; and back."""
    explained.save_html(str(tmp_path / "e.html"), alternatives=[{"stride": 4112}, {"SIZE": 48}, {"num_warps": 8}])
    chromium.get((tmp_path / "e.html").as_uri())
    present = text(chromium, ".summary .time")
    assert "cannot be compiled" in text(chromium, ".whatif") and "without narrow-access" in text(chromium, ".whatif")
    chromium.find_element("css selector", "[data-alternative='1']").click()
    assert text(chromium, ".summary .time") != present and "(was 4097)" in text(chromium, ".arguments")
    assert "No findings" in text(chromium, "[aria-label='Findings']") and "gone" in text(chromium, ".finding.gone")
    assert "1,540,096" in text(chromium, ".changes") and "0.68 times" in text(chromium, ".changes")
    select = chromium.find_element("css selector", "select[data-name='num_warps']")
    select.send_keys("8")
    assert "num_warps = 8" in text(chromium, ".arguments") and "stride = 4097" in text(chromium, ".arguments")
    chromium.find_element("css selector", "[data-alternative='0']").click()
    assert text(chromium, ".summary .time") == present
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_two_beside_each_other(explained: Explanation, chromium: Any, tmp_path: Path) -> None:
    """A line that is chosen on one side is chosen on the other."""
    explained.diff(explained.what_if(stride=4112)).save_html(str(tmp_path / "d.html"))
    chromium.get((tmp_path / "d.html").as_uri())
    before, after = chromium.find_elements("css selector", ".both .view > .top .time")
    assert " us" in before.text and " us" in after.text and "−" in after.text
    line = next(a.remark.span.line for a in explained.accesses if a.remark.span is not None)
    chromium.find_elements("css selector", f".row[data-at='0:{line}']")[0].click()
    pinned = chromium.find_elements("css selector", ".row.pinned .n")
    assert [node.text for node in pinned] == [str(line), str(line)]
    left, right = chromium.find_elements("css selector", ".detail")
    assert "2 bytes at a time, of 16" in left.text and "16 bytes at a time, of 16" in right.text
    assert "was 1,540,096" in right.text and "stride" in text(chromium, "[aria-label='What changed']")
    assert [entry for entry in chromium.get_log("browser") if entry["level"] == "SEVERE"] == []

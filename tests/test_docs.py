"""The documentation says what is so: links lead somewhere, files it names exist, what is printed in it is what is made.

A block under `<!-- made: NAME -->` is the outcome of the function `NAME` here, from the kernel on the page.

    python tests/test_docs.py --update     # write what is made now; then read the difference
"""

from __future__ import annotations

import functools
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.backends.cpu import CPUOptions, codegen, loads_first, schedule
from weft.backends.cpu.nest import Nest, Root
from weft.backends.cpu.program import FunctionProgram, Value, read_function
from weft.backends.cpu.reduce import ReduceRoot
from weft.backends.cpu.roots import StoreRoot, WriteRoot
from weft.base import CompileOptions
from weft.compiler import GPUTarget
from weft.ir import print_module
from weft.passes import cpu_pipeline, tile_pipeline

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
IDS = [str(p.relative_to(ROOT)) for p in PAGES]
ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"


# -- links and names of files ----------------------------------------------------------------------------------------


def _prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    titles = re.findall(r"^#+ +(.*?) *$", _prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> Iterator[str]:
    """Links to files or headings that are not there."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", _prose(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists():
            yield f"{target}: there is no such file"
        elif anchor and anchor not in _anchors(file):
            yield f"{target}: the page has no such heading"


def missing_files(page: Path) -> Iterator[str]:
    """Files named in `code` that are not there; they may be given from the root, the package or the page."""
    for name in re.findall(r"`([\w./*-]+/[\w./*-]*|[\w/]+\.(?:py|md|toml|txt))`", _prose(page)):
        if name.startswith(("/", ".")) or name.endswith(".ttir") or not re.search(r"[a-z]", name):
            continue
        bases = (ROOT, ROOT / "src" / "weft", ROOT / "src" / "weft" / "backends", page.parent)
        if not any(next(base.glob(name.rstrip("/")), None) for base in bases) and not _in_package(name.rstrip("/")):
            yield name


@functools.cache
def _in_package(name: str) -> bool:
    """Whether a file is anywhere in the package; the whole tree is looked through."""
    return any((ROOT / "src" / "weft").rglob(name))


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    assert not list(broken_links(page))


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name != "decisions"], ids=lambda p: p.name)
def test_files_that_are_named_exist(page: Path) -> None:
    assert not list(missing_files(page))


@pytest.mark.parametrize("kept", sorted((ROOT / "benchmarks" / "results").glob("*.json")), ids=lambda p: p.name)
def test_results_name_files_as_in_the_repository(kept: Path) -> None:
    """A note that quotes a place once had the path of the machine that made it."""
    assert not re.findall(r"(?<![\w.])/[\w./-]+\.py", kept.read_text(encoding="utf-8"))


def test_every_page_can_be_reached() -> None:
    """From docs/README.md, by links; docs/index.md is what the site has in its place."""
    seen: set[Path] = set()
    todo = [ROOT / "docs" / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        todo += [(page.parent / t.partition("#")[0]).resolve() for t in re.findall(r"\]\(([^)\s:]+)\)", _prose(page))]
    assert not set((ROOT / "docs").rglob("*.md")) - seen - {ROOT / "docs" / "index.md"}


def test_every_page_is_on_the_site() -> None:
    """A pattern of docs/index.md, or the list of decisions, has it: `make docs` refuses a page that none has."""
    docs = ROOT / "docs"
    patterns = re.findall(r"^([\w/*]+)$", (docs / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    on_site = {page for pattern in patterns for page in docs.glob(f"{pattern}.md")}
    on_site |= {*(docs / "explanation" / "decisions").glob("0*.md"), docs / "index.md", docs / "README.md"}
    assert sorted(set(docs.rglob("*.md")) - on_site) == []


# -- what is made ----------------------------------------------------------------------------------------------------


def _kernel() -> weft.ASTSource:
    """The first kernel of docs/explanation/architecture.md, specialised as by a launch with arrays of floats."""
    match = re.search(r"```python\n(@weft\.jit\n.*?)```", ARCHITECTURE.read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    code = match[1]
    linecache.cache["softmax.py"] = (len(code), None, code.splitlines(keepends=True), "softmax.py")
    space: dict[str, Any] = {"weft": weft, "tl": tl, "__name__": "softmax"}
    exec(compile(code, "softmax.py", "exec", dont_inherit=True), space)
    signature = {"out": "*fp32", "x": "*fp32", "width": "i32", "stride": "i32", "BLOCK": "constexpr"}
    attributes = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}
    return weft.ASTSource(space["softmax"], signature, {"BLOCK": 1024}, attributes)


def _module() -> Any:
    return tile_pipeline(_kernel().make_ir(CompileOptions(), GPUTarget("cpu", "haswell", 1)))


def ttir() -> str:
    """The kernel as tile IR."""
    return print_module(_module())


# A processor with vectors of 256 bits: the text is the same on every machine.
OPTIONS = CPUOptions(cpu="haswell", features="+avx2,+fma", vector_bits=256)


class _Recorder(Nest):
    """Remembers the nests."""

    made: list[_Recorder]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.pulled = [v.op.name for v, _ in self.visited if v.op is not None and v not in self.env]
        self.read = [v for v, _ in self.visited if v in self.env]
        _Recorder.made.append(self)


def _emit(vectors: int = loads_first.VECTORS) -> tuple[str, list[_Recorder]]:
    """The text and the nests, with so many vectors at a time (as a power of two) where loads come before stores."""
    module, parameters = cpu_pipeline(_module())
    program: FunctionProgram = read_function(module.body.block.first_op)
    _Recorder.made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "Nest", _Recorder)
        patch.setattr(loads_first, "VECTORS", vectors)
        text, _ = codegen.emit(program, OPTIONS, parameters)
    return text, _Recorder.made


def _called(value: Value) -> str:
    return f"%{value.op.source.results[value.index].name_hint or '?'}" if value.op else "?"


def _root(root: Root) -> str:
    if isinstance(root, ReduceRoot):
        combine = root.op.regions[0][0].ops[0].name
        return f"reduce {_called(root.op.args[0])} by {combine}"
    if isinstance(root, WriteRoot):
        return f"write {_called(root.value)} to scratch"
    if isinstance(root, StoreRoot):
        return "store"
    return "prefetch for the next program"


def _bits(bits: Any) -> str:
    low, high = min(bits), max(bits)
    return str(low) if low == high else f"{low}-{high}"


def nests() -> str:
    """The nests that the kernel becomes: what each does at every point, and what its iteration bits are."""
    lines = []
    for i, nest in enumerate(_emit()[1], 1):
        roles = {
            "lanes": nest.lane_bits,
            "unrolled": (*nest.unroll, *nest.group.bits),
            "loop of the reduction": nest.inner_bits,
            "loop": [b for b in nest.outer_bits if b not in nest.group.bits],
        }
        shape = "x".join(map(str, nest.shape))
        lines.append(f"nest {i} over {shape}: bits " + ", ".join(f"{_bits(b)} {r}" for r, b in roles.items() if b))
        lines += [f"    reads   {_called(v)} from scratch" for v in nest.read]
        lines.append(f"    pulls   {', '.join(nest.pulled)}")
        lines += [f"    does    {_root(root)}" for root in nest.roots]
    return "\n".join(lines) + "\n"


def llvm() -> str:
    """The versions of the last nest: inside of the mask, with stores around the cache and not; and not inside. With one
    vector at a time.
    """
    blocks = re.split(r"^(?=\w+:$)", _emit(vectors=0)[0].partition("\n}\n")[0], flags=re.MULTILINE)
    wanted = "".join(b for b in blocks if "fdiv" in b)
    names: dict[str, str] = {}
    for name in re.findall(r"%[vr]\d+", wanted):
        names.setdefault(name, f"%{len(names) + 1}")
    labels: dict[str, str] = {}
    for label in re.findall(r"\b(?:body|then|else|done|join)\d+\b", wanted):
        hint = label.rstrip("0123456789")
        labels.setdefault(label, f"{hint}{1 + sum(old.rstrip('0123456789') == hint for old in labels)}")
    text = re.sub(r"%[vr]\d+", lambda m: names[m[0]], wanted)
    return re.sub(r"\b(?:body|then|else|done|join)\d+\b", lambda m: labels[m[0]], text)


MAKERS: dict[str, Callable[[], str]] = {"ttir": ttir, "nests": nests, "llvm": llvm}
MADE = re.compile(r"(?P<head><!-- made: (?P<name>\w+) -->\n```\w*\n)(?P<text>.*?)(?P<end>```\n)", re.DOTALL)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_shown_is_what_is_made(name: str) -> None:
    found = {m["name"]: m["text"] for m in MADE.finditer(ARCHITECTURE.read_text(encoding="utf-8"))}
    assert name in found
    assert found[name] == MAKERS[name](), "to write what is made now: python tests/test_docs.py --update"


@pytest.mark.parametrize("room", ["passes", "lower"])
def test_every_pass_and_lowering_is_listed(room: str) -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    names = [path.stem for path in (ROOT / "src" / "weft" / room).glob("*.py") if path.stem != "__init__"]
    assert len(names) > 20
    assert [name for name in names if f"`{name}`" not in text and f"{room}/{name}.py" not in text] == []


def test_the_table_of_rooms_is_the_tree() -> None:
    """docs/explanation/architecture.md lists every room that is there, in the order of its imports."""
    table = re.findall(r"^\| `(\w+)/` \|", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(table) == {p.parent.name for p in (ROOT / "src" / "weft").glob("*/__init__.py")}


def update() -> None:
    """Write what is made now."""
    page = ARCHITECTURE.read_text(encoding="utf-8")
    ARCHITECTURE.write_text(MADE.sub(lambda m: m["head"] + MAKERS[m["name"]]() + m["end"], page), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    update()

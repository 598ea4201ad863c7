"""Code objects: what the linker makes, checked by `container`, and beside lld's where Debian has it."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.backends.amd import facts_of, linked, object_code, processor_of
from weft.backends.amd.elf import ObjectFile
from weft.base import CompilerCrash, LaunchTypeError
from weft.compiler import compile as compile_here
from weft.machines import machine_of

from .code_object import CodeObject
from .container import problems
from .suite import CASES, PROCESSORS, sizes
from .waits import check

SAMPLE = ("vector_add", "softmax", "matmul_f16")
LLD, READOBJ = (shutil.which(name) for name in ("ld.lld-19", "llvm-readobj-19"))
HEAD = """
@table = internal addrspace(4) constant [4 x float] [float 1.0, float 2.0, float 3.0, float 5.0], align 16
"""
BODY = """
define amdgpu_kernel void @look_up(ptr addrspace(1) %out, i32 %i) {
  %p = getelementptr float, ptr addrspace(4) @table, i32 %i
  %x = load float, ptr addrspace(4) %p
  store float %x, ptr addrspace(1) %out
  ret void
}
"""
FLAGS = '!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}\n'


@weft.jit
def summed(x, y, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


def made(name: str, processor: str) -> Any:
    """A kernel of the suite, compiled in this process."""
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    source = weft.ASTSource(case.kernel, types, values, attributes)
    return compile_here(source, f"hip:{processor}", case.options)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_kernels_of_the_suite_are_code_objects(processor: str) -> None:
    some = [n for n in CASES if zlib.crc32(f"{n} {processor}".encode()) % 90 == 0 and "large" not in n]
    for name in {SAMPLE[zlib.crc32(processor.encode()) % 3], *some[:1]}:
        kernel = made(name, processor)
        assert problems(kernel.asm["hsaco"], processor, sizes(kernel)) == [], name
        taken = kernel.metadata.taken
        assert (taken["shared"], taken["threads"]) == (kernel.metadata.shared, kernel.metadata.threads)
        assert (kernel.n_regs, kernel.n_spills) == (taken["registers"], taken["spills"])
        assert f"amdgcn-amd-amdhsa--{processor}" in kernel.asm["amdgcn"]
        assert not check(kernel.asm["amdgcn"]), name


def test_every_processor_has_its_number_in_the_header() -> None:
    for processor in PROCESSORS:
        image = linked(object_code(BODY + HEAD + FLAGS, processor_of(machine_of(f"hip:{processor}"))))
        assert problems(image, processor, [8, 4]) == []


def with_bytes(image: bytes, at: int, value: bytes) -> bytes:
    return image[:at] + value + image[at + len(value) :]


def test_faults_of_a_container_are_found() -> None:
    image = linked(object_code(BODY + HEAD + FLAGS, processor_of(machine_of("hip:gfx942"))))
    descriptor = CodeObject(image).symbols["look_up.kd"][0]
    found = {
        "machine": problems(with_bytes(image, 18, b"\x3e")),
        "processor": problems(with_bytes(image, 48, b"\x4f"), "gfx942"),
        "page": problems(with_bytes(image, 64 + 2 * 56 + 16, struct.pack("<Q", 0x600))),
        "entry": problems(with_bytes(image, descriptor + 16, b"\x10")),
        "LDS": problems(with_bytes(image, descriptor, b"\x10")),
        "lanes": problems(with_bytes(image, descriptor + 57, b"\x04")),
        "arguments": problems(image, "gfx942", [8, 8]),
    }
    assert {name: len(wrong) > 0 for name, wrong in found.items()} == dict.fromkeys(found, True)


def test_a_table_is_found_from_where_the_code_is() -> None:
    """REL32_LO and REL32_HI: `s_getpc_b64` gives the address behind it, to which the distance is added."""
    for processor, counter in (("gfx942", 0xBE801C00), ("gfx1201", 0xBE804700)):
        data = object_code(BODY + HEAD + FLAGS, processor_of(machine_of(f"hip:{processor}")))
        file, code = ObjectFile.read(data), CodeObject(linked(data))
        places = {r.type: r for r in file.relocations if r.section == ".text"}
        assert sorted(places) == [10, 11]
        image, entry = code.image(), code.symbols["look_up"][0]
        low, high = (struct.unpack_from("<I", image, entry + places[t].offset)[0] for t in (10, 11))
        distance = (low | high << 32) - (1 << 64 if high >> 31 else 0)
        behind = image.index(struct.pack("<4f", 1.0, 2.0, 3.0, 5.0)) - distance
        assert struct.unpack_from("<I", image, behind - 4)[0] & 0xFF80FF00 == counter


def test_what_nobody_has_is_an_error() -> None:
    text = BODY + "@table = external addrspace(4) constant [4 x float]\n" + FLAGS
    data = object_code(text, processor_of(machine_of("hip:gfx942")))
    with pytest.raises(CompilerCrash) as caught:
        linked(data)
    assert caught.value.message in (
        "the kernel asks for `table`, which is not defined",
        "a relocation of type 8 for `table` in .text, which a kernel that is loaded anywhere cannot have",
    )


def test_an_absolute_address_is_an_error() -> None:
    text = BODY + HEAD + "@place = addrspace(1) global ptr addrspace(4) @table\n" + FLAGS
    data = object_code(text, processor_of(machine_of("hip:gfx942")))
    with pytest.raises(CompilerCrash, match=r"a relocation of type 3 for `[^`]*` in \.data"):
        linked(data)


@pytest.mark.skipif(LLD is None or READOBJ is None, reason="lld-19 and llvm-19 of Debian are not installed")
@pytest.mark.parametrize("processor", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_lld_and_readobj_agree(processor: str, tmp_path: Path) -> None:
    name = SAMPLE[zlib.crc32(processor.encode()) % 3]
    kernel = made(name, processor)
    data = object_code(kernel.asm["llir"], processor_of(machine_of(f"hip:{processor}")))
    assert kernel.asm["hsaco"] == linked(data)
    for file, contents in (("k.o", data), ("ours", kernel.asm["hsaco"])):
        (tmp_path / file).write_bytes(contents)
    subprocess.run([str(LLD), "-shared", "k.o", "-o", "theirs"], cwd=tmp_path, check=True, timeout=60)
    ours, theirs = (CodeObject((tmp_path / file).read_bytes()) for file in ("ours", "theirs"))
    assert ours.metadata == theirs.metadata and ours.flags == theirs.flags
    assert {n: size for n, (_, size) in ours.symbols.items()} == {n: size for n, (_, size) in theirs.symbols.items()}
    for one in (ours, theirs):
        (found,) = one.kernels.values()
        assert found.descriptor.entry == one.symbols[found.metadata[".name"]][0]
    texts = []
    for one in (ours, theirs):
        (found,) = one.kernels.values()
        begin, size = one.symbols[found.metadata[".name"]]
        contents = found.descriptor.contents
        texts.append((one.image()[begin : begin + size], contents[:16], contents[24:]))
    assert texts[0] == texts[1]
    command = [str(READOBJ), "--notes", "--dyn-syms", "--hash-table", "--program-headers", "--sections", "ours"]
    told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    assert "warning" not in told.stderr and f"Name: {kernel.name}.kd" in told.stdout


def test_facts_are_those_of_the_note() -> None:
    kernel = made("matmul_f16", "gfx942")
    facts = facts_of(kernel.asm["hsaco"])
    assert facts.shared == kernel.metadata.shared > 0 and facts.threads == kernel.metadata.threads
    assert [kind for _, _, kind in facts.arguments] == ["global_buffer"] * 3 + ["by_value"] * 6
    assert facts.argument_bytes == 48


def test_as_many_warps_fit_as_are_asked_for() -> None:
    """Of a kernel with little shared memory: LLVM takes no notice where something else lets no more of them fit."""
    known = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    source = weft.ASTSource(summed, dict.fromkeys(("x", "y", "out"), "*fp32"), {"BLOCK": 32768}, known)
    given: tuple[dict[str, Any], ...] = ({}, {"waves_per_eu": 4}, {"maxnreg": 64})
    found = [compile_here(source, "hip:gfx942", options).n_regs for options in given]
    assert found[0] > 128 >= max(found[1:])
    with pytest.raises(LaunchTypeError, match="waves_per_eu must be a number of warps from 0"):
        compile_here(source, "hip:gfx942", {"waves_per_eu": 99})


@weft.jit
def copied(x, out, LOAD: tl.constexpr, STORE: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, 128)
    tl.store(out + i, tl.load(x + i, cache_modifier=LOAD), cache_modifier=STORE)


@pytest.mark.parametrize(
    ("load", "store", "processor", "flags"),
    [
        (".ca", ".wb", "gfx942", ["", ""]),
        (".cg", ".cg", "gfx942", [" nt", ""]),
        (".cs", ".cs", "gfx942", [" nt", " nt"]),
        (".cv", ".wt", "gfx1100", [" glc dlc", " dlc"]),
        (".cg", ".cg", "gfx1201", [" th:TH_LOAD_NT", ""]),
        (".cv", ".wt", "gfx1201", [" th:TH_LOAD_NT scope:SCOPE_SYS", " th:TH_STORE_NT scope:SCOPE_SYS"]),
    ],
)
def test_caches(load: str, store: str, processor: str, flags: list[str]) -> None:
    """What Triton's tests want of each modifier: a store goes past the first level anyway."""
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(2)}
    source = weft.ASTSource(copied, {"x": "*fp32", "out": "*fp32"}, {"LOAD": load, "STORE": store}, aligned)
    text = str(compile_here(source, f"hip:{processor}").asm["amdgcn"])
    accesses = re.findall(r"global_(?:load|store)_\w+ .*s\[\d+:\d+\](.*)$", text, re.MULTILINE)
    assert accesses == flags

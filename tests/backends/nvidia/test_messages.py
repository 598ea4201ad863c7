"""What is said where a GPU, its driver or a tool is missing or refuses: whole messages, with a driver that pretends."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import compiler
from weft.backends.nvidia import driver, faults, loaded_kernel, occupancy, ptxas, tensormaps
from weft.base import CompilerCrash, DeviceLost, LaunchError, NoDevice, OutOfResources, PTXASError, Unsupported
from weft.compiler import SIMULATED, TARGETS
from weft.runtime import gpu, knobs
from weft.runtime.arrays import ArrayFacts

DEVICE = driver.Device(
    0, "NVIDIA A100", 80 << 30, 1, 108, 8, 0, 163 << 10, 65536, 1024, 40 << 20, 1410000, 1593000, 5120
)


@weft.jit
def _double(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i))


def _source() -> Any:
    return weft.ASTSource(_double, {"x": "*fp32", "out": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 128})


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`cuda.bindings.driver` as these tests have it, not yet initialised."""
    fake = SimpleNamespace(
        cuGetErrorName=lambda status: (0, f"CUDA_ERROR_{int(status)}".encode()),
        cuGetErrorString=lambda status: (0, b"what the driver says"),
    )
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=SimpleNamespace(driver=fake)))
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=fake))
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)
    cached = (driver.api, driver.device_count)
    for function in cached:
        function.cache_clear()
    yield fake
    for function in cached:
        function.cache_clear()


def _said(call: Any, kind: type[Exception]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_no_bindings(bindings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert _said(lambda: weft.cuda.to_device(np.zeros(4)), NoDevice) == (
        "the package cuda-bindings is not installed\nhint: pip install 'weft[cuda]'; without a GPU use the "
        "target cpu, or sim:cuda:90 to simulate one"
    )
    assert not weft.cuda.is_available() and weft.cuda.device_count() == 0


def test_no_driver(bindings: Any) -> None:
    def fails(flags: int) -> Any:
        raise RuntimeError("libcuda.so.1 not found\nand more")

    bindings.cuInit = fails
    assert _said(lambda: weft.cuda.to_device(np.zeros(4)), NoDevice) == (
        "NVIDIA's driver was not found (libcuda.so.1 not found)\n"
        "hint: install the display driver; without a GPU use the target cpu, or sim:cuda:90 to simulate one"
    )


def test_a_driver_that_does_not_start(bindings: Any) -> None:
    way = "without a GPU use the target cpu, or sim:cuda:90 to simulate one"
    bindings.cuInit = lambda flags: (803,)
    assert _said(lambda: weft.cuda.to_device(np.zeros(4)), NoDevice) == (
        f"the CUDA driver does not start: CUDA_ERROR_803 (what the driver says)\nhint: nvidia-smi says more; {way}"
    )
    bindings.cuInit = lambda flags: (100,)
    assert _said(lambda: weft.cuda.to_device(np.zeros(4)), NoDevice) == (
        "the driver sees no NVIDIA GPU: CUDA_ERROR_100 (what the driver says)\n"
        f"hint: CUDA_VISIBLE_DEVICES may hide it; {way}"
    )


def test_no_gpu(bindings: Any) -> None:
    bindings.cuInit = lambda flags: (0,)
    bindings.cuDeviceGetCount = lambda: (0, 0)
    bindings.cuCtxGetCurrent = lambda: (0, 0)
    assert _said(lambda: weft.cuda.to_device(np.zeros(4)), NoDevice) == (
        "there is no NVIDIA GPU here\nhint: use the target cpu, or sim:cuda:90 to simulate one"
    )
    assert _said(lambda: weft.cuda.to_device(np.zeros(4), device=3), LaunchError) == (
        "there is no GPU 3: this process sees 0"
    )


def _loading(bindings: Any, monkeypatch: pytest.MonkeyPatch, version: int, status: int, image: bytes) -> str:
    """What is said where a driver of this version answers so when it is given an image."""
    monkeypatch.setattr(loaded_kernel, "api", lambda: bindings)
    monkeypatch.setattr(loaded_kernel, "current_device", lambda: DEVICE)
    monkeypatch.setattr(loaded_kernel, "driver_version", lambda: version)
    bindings.cuLibraryLoadData = lambda *arguments: (status, None)
    facts = {"name": "k", "shared": 0, "num_warps": 4, "target": "cuda:80"}
    return _said(lambda: loaded_kernel.LoadedKernel(image, facts), LaunchError)


@pytest.mark.parametrize("status", [200, 209, 218, 221, 222])
def test_a_driver_too_old_for_the_code(bindings: Any, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    hint = (
        "hint: install a newer display driver; or compile for this GPU with a ptxas that is no newer than the driver "
        "(WEFT_PTXAS)"
    )
    assert _loading(bindings, monkeypatch, 12040, status, b"//\n.version 8.8\n.target sm_80\n") == (
        "the driver, which knows CUDA 12.4, cannot load the PTX of k, version 8.8: "
        f"CUDA_ERROR_{status} (what the driver says)\n{hint}"
    )
    assert _loading(bindings, monkeypatch, 12040, status, b"\x7fELF .version 8.8") == (
        "the driver, which knows CUDA 12.4, cannot load the machine code of k: "
        f"CUDA_ERROR_{status} (what the driver says)\n{hint}"
    )


def test_a_driver_without_libraries_of_kernels(bindings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _loading(bindings, monkeypatch, 11080, 0, b"") == (
        "the driver knows CUDA 11.8; kernels need one that knows CUDA 12.0\nhint: install a newer display driver"
    )


def test_an_unknown_architecture() -> None:
    exist = f"targets that exist: {', '.join((*TARGETS, *SIMULATED))}; "
    way = "set WEFT_TARGET or use `with weft.target(...)`"
    for number, nearest in (
        (110, "the nearest that a GPU of capability 110 runs is cuda:103; "),
        (88, "the nearest that a GPU of capability 88 runs is cuda:87; "),
        (70, "a GPU of capability 70 is older than all that are compiled for: use cpu, or sim:cuda:80; "),
    ):
        assert _said(lambda: weft.compile(_source(), target=f"cuda:{number}"), Unsupported) == (
            f"error: compiling is not supported on target cuda:{number}\nhint: {nearest}{exist}{way}"
        )


def test_code_for_another_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_kernel, "current_device", lambda: DEVICE)
    facts = {"name": "k", "shared": 0, "num_warps": 4, "target": "cuda:90"}
    assert _said(lambda: loaded_kernel.LoadedKernel(b"", facts), Unsupported) == (
        "error: running code for cuda:90 is not supported on target cuda:80\nhint: the NVIDIA A100 takes target cuda:80"
    )


def test_too_much_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_kernel, "current_device", lambda: DEVICE)
    facts = {"name": "k", "shared": 200000, "num_warps": 4, "target": "cuda:80"}
    assert _said(lambda: loaded_kernel.LoadedKernel(b"", facts), OutOfResources) == (
        "out of resource: shared memory, Required: 200000, Hardware limit: 166912.\n"
        "hint: smaller blocks or fewer num_stages; a block of the NVIDIA A100 has 166912 bytes"
    )


def _threads(bindings: Any, monkeypatch: pytest.MonkeyPatch, warps: int, registers: int, most: int) -> str:
    facts = {"NUM_REGS": registers, "MAX_THREADS_PER_BLOCK": most}
    names = SimpleNamespace(**{f"CU_FUNC_ATTRIBUTE_{n}": n for n in (*facts, "LOCAL_SIZE_BYTES", "SHARED_SIZE_BYTES")})
    bindings.CUfunction_attribute = names
    bindings.cuLibraryGetKernel = lambda library, name: (0, 7)
    bindings.cuLibraryLoadData = lambda *arguments: (0, 5)
    bindings.cuDeviceGet = lambda index: (0, index)
    bindings.cuKernelGetAttribute = lambda name, kernel, device: (0, facts.get(name, 0))
    monkeypatch.setattr(loaded_kernel, "api", lambda: bindings)
    monkeypatch.setattr(loaded_kernel, "current_device", lambda: DEVICE)
    monkeypatch.setattr(loaded_kernel, "driver_version", lambda: 12040)
    metadata = {"name": "k", "shared": 0, "num_warps": warps, "target": "cuda:80"}
    return _said(lambda: loaded_kernel.LoadedKernel(b"", metadata), OutOfResources)


def test_too_many_registers_and_threads(bindings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _threads(bindings, monkeypatch, 32, 128, 512) == (
        "out of resource: threads, Required: 1024, Hardware limit: 512.\n"
        "  threads of a block     1024 (32 warps), of at most 1024\n"
        "  their registers      131072 (128 each), of at most 65536\n"
        "hint: num_warps=16, or maxnreg=64"
    )
    assert _threads(bindings, monkeypatch, 64, 16, 1024) == (
        "out of resource: threads, Required: 2048, Hardware limit: 1024.\n"
        "  threads of a block     2048 (64 warps), of at most 1024\n"
        "  their registers       32768 (16 each), of at most 65536\n"
        "hint: num_warps=32"
    )


def test_a_grid_too_large_for_a_cooperative_launch(bindings: Any) -> None:
    assert _said(lambda: faults.check((720,), "k"), LaunchError) == (
        "the grid of k is too large for a cooperative launch: CUDA_ERROR_720 (what the driver says)\n"
        "hint: its programs wait for each other, so that all must run at once: a smaller grid, smaller programs"
    )


@pytest.mark.parametrize(
    "status,way", [(912, "a smaller num_ctas"), (900, "launch it once before the capture begins"), (701, "num_warps")]
)
def test_a_launch_that_the_driver_refuses(bindings: Any, status: int, way: str) -> None:
    said = _said(lambda: faults.check((status,), "k"), LaunchError)
    assert (
        said.startswith(f"the launch of k failed: CUDA_ERROR_{status} (what the driver says)\nhint: ") and way in said
    )


@pytest.mark.parametrize("registers", [0, -8, 64.0, "64", True])
def test_registers_that_no_thread_can_have(registers: Any) -> None:
    assert _said(lambda: weft.compile(_source(), "cuda:80", {"maxnreg": registers}), LaunchError) == (
        f"maxnreg must be a number of registers of a thread, 1 or more, got {registers!r}"
    )


@pytest.mark.parametrize("registers", [255, 256, 300])
def test_more_registers_than_a_thread_can_have_are_no_limit(registers: int) -> None:
    assert ".maxnreg" not in weft.compile(_source(), "cuda:80", {"maxnreg": registers}).asm["ptx"]


def test_memory_that_is_not_there(bindings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "api", lambda: bindings)
    monkeypatch.setattr(driver, "device_count", lambda: 1)
    bindings.cuCtxSetCurrent = lambda context: (0,)
    bindings.cuMemAlloc = lambda size: (2, None)
    bindings.cuMemGetInfo = lambda: (0, 1 << 20, 80 << 30)
    assert _said(lambda: driver.allocate(1 << 30, DEVICE), OutOfResources) == (
        "out of resource: GPU memory, Required: 1073741824, Hardware limit: 1048576.\n"
        "hint: free arrays, or use smaller ones"
    )


def test_arrays_of_two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    places = {"one": 0, "other": 1}
    monkeypatch.setattr(gpu, "array_facts", lambda name: ArrayFacts(4096, "fp32", (0, 512), device=places[name]))
    monkeypatch.setattr(gpu, "reader_of", lambda name: gpu.array_facts)
    assert _said(lambda: gpu.device_of(["x", "out"], ("one", "other")), LaunchError) == (
        "argument `x` is on GPU 0, argument `out` on GPU 1; a launch runs on one\n"
        "hint: copy it there: out.to(x.device) in PyTorch"
    )


def test_a_host_array_says_where_it_lives() -> None:
    assert _said(lambda: gpu.device_facts(np.zeros(4)), LaunchError) == (
        "a numpy.ndarray lives in host memory, but the kernel runs on a GPU\n"
        "hint: copy it first: weft.cuda.to_device(x), x.cuda() in PyTorch, cupy.asarray(x)"
    )


@pytest.mark.parametrize("status,what", sorted(faults._FAULTS.items()))
def test_a_fault_is_a_lost_device(bindings: Any, monkeypatch: pytest.MonkeyPatch, status: int, what: str) -> None:
    launches = deque([("first", 4, 1, 1), ("second", 2, 3, 1)])
    monkeypatch.setattr(faults, "_CUDA", replace(faults._CUDA, launches=launches))
    said = _said(lambda: faults.check((status,), "second"), DeviceLost)
    lines = said.splitlines()
    assert lines[:5] == [
        f"the GPU is lost: {what}",
        f"the driver says: CUDA_ERROR_{status} (what the driver says)",
        "launches that may have done it, the last one first:",
        "  second over (2, 3, 1)",
        "  first over (4, 1, 1)",
    ]
    assert lines[5] == "Arrays on the GPU are lost and every further call fails: restart the process."
    assert lines[6].startswith("hint: run the kernel with target='sim:cuda:90', which names the line and the address;")


def test_a_tensor_map_of_an_address_that_is_not_aligned() -> None:
    array = weft.TensorDescriptor(np.zeros((64, 64), np.float16), [64, 64], [64, 1], [64, 64])
    make = tensormaps.map_maker("a", [("f16", [64, 64], 128, [64, 64], -1)])
    said = _said(lambda: make((array, 4096 + 8)), LaunchError)
    assert re.search(r"^`a` .*address.*16", said), said


# -- ptxas ------------------------------------------------------------------------------------------------------------


def _tool(tmp_path: Path, script: str) -> str:
    tool = tmp_path / "ptxas"
    tool.write_text(f"#!{sys.executable}\nimport os, sys\n{script}\n")
    tool.chmod(0o755)
    return str(tool)


@pytest.fixture
def assembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that puts a script in the place of ptxas."""

    def put(script: str) -> None:
        monkeypatch.setenv("WEFT_PTXAS", _tool(tmp_path, script))

    yield put
    monkeypatch.undo()


@pytest.mark.skipif(sys.platform == "win32", reason="a script takes the place of ptxas")
class TestPtxas:
    """A tool that refuses, dies or says too much."""

    def test_refuses(self, assembler: Any) -> None:
        assembler("print('ptxas kernel.ptx, line 7; error : Unknown symbol', file=sys.stderr); sys.exit(255)")
        with pytest.raises(CompilerCrash) as caught:
            ptxas.assemble(".version 8.0", "sm_90a")
        assert "ptxas refuses the PTX of this kernel:\nptxas kernel.ptx, line 7; error : Unknown symbol" in str(
            caught.value
        )

    def test_too_much_shared_memory(self, assembler: Any) -> None:
        text = "error : Entry function 'k' uses too much shared data (0x40000 bytes, 0x38c00 max)"
        assembler(f"print({text!r}, file=sys.stderr); sys.exit(255)")
        said = _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), OutOfResources)
        assert said.startswith("out of resource: shared memory, Required: 262144, Hardware limit: 232448.")

    def test_dies(self, assembler: Any) -> None:
        assembler("os.kill(os.getpid(), 11)")
        assert "ptxas ended by signal 11" in _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), CompilerCrash)

    def test_hangs(self, assembler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ptxas, "TIMEOUT_S", 0.2)
        assembler("import time; time.sleep(20)")
        said = _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), CompilerCrash)
        assert "ptxas did not end within 0.2 seconds" in said

    def test_is_not_there(self, assembler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WEFT_PTXAS", "/nowhere/ptxas")
        assert "ptxas could not be run" in _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), CompilerCrash)

    def test_is_another_program(self, assembler: Any) -> None:
        assembler("print('no such option', file=sys.stderr); sys.exit(1)")
        said = _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), PTXASError)
        tool = ptxas.find_tool()
        assert said == (
            "error: ptxas refuses the PTX of this kernel:\nno such option\n"
            f"hint: is {tool} NVIDIA's ptxas? WEFT_PTXAS, TRITON_PTXAS_PATH, PATH or CUDA_HOME name the one to use"
        )
        assembler("")
        said = _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), PTXASError)
        assert said.startswith("error: ptxas refuses the PTX of this kernel:\n(it says nothing)\nhint: is ")

    @pytest.mark.parametrize(
        "text",
        [
            "ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'",
            "ptxas kernel.ptx, line 5; fatal   : Unsupported .version 8.8; current version is '7.8'",
        ],
    )
    def test_is_too_old(self, assembler: Any, text: str) -> None:
        assembler(f"print({text!r}, file=sys.stderr); sys.exit(255)")
        said = _said(lambda: ptxas.assemble(".version 8.8", "sm_90a"), PTXASError)
        assert "is too old for this GPU: install a newer CUDA, or name a newer ptxas by WEFT_PTXAS" in said

    def test_is_killed(self, assembler: Any) -> None:
        assembler("os.kill(os.getpid(), 9)")
        said = _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), PTXASError)
        assert said.startswith("error: ptxas was ended from outside, by signal 9\nhint: ")

    def test_has_no_place_for_files(self, assembler: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        assembler("")
        monkeypatch.setattr(ptxas.tempfile, "tempdir", str(tmp_path / "nowhere"))
        said = _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), LaunchError)
        assert said.startswith(f"ptxas has no place for its files in {tmp_path / 'nowhere'}: ") and "TMPDIR" in said

    @pytest.mark.parametrize(
        "text,limit,needed",
        [
            (
                "(C7602) Insufficient registers (24) to compile instruction at line 8 in function k. "
                "Try to compile with register target of 90 or higher.",
                24,
                90,
            ),
            ("(C7600) Register allocation failed with register count of '168'. Compile the program", 168, 169),
        ],
    )
    def test_has_too_few_registers(self, assembler: Any, text: str, limit: int, needed: int) -> None:
        """That is no fault of Weft, and an autotuner passes over it."""
        code = '.version 8.0\n.entry k\n.maxnreg 24\n{\n.loc 1 7 1\nfirst;\n.loc 1 18 5\nsecond;\n}\n.file 1 "k.py"\n'
        assembler(f"print({'ptxas fatal : ' + text!r}, file=sys.stderr); sys.exit(255)")
        with pytest.raises(OutOfResources) as caught:
            ptxas.assemble(code, "sm_90a")
        assert (caught.value.name, caught.value.required, caught.value.limit) == ("registers", needed, limit)
        assert caught.value.details == ((f"  k.py:18 needs {needed} registers of a thread",) if limit == 24 else ())
        assert f"hint: maxnreg={needed} or more; or smaller tiles, or more warps (num_warps)" in str(caught.value)

    def test_makes_code_that_is_kept_for_itself_alone(self, assembler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Machine code of a ptxas newer than the driver came out of the cache again, whichever was named then."""
        store = _Store()
        monkeypatch.setattr(occupancy, "assemble_for", _plainly)

        def made() -> bytes:
            kernel = compiler.compile(_source(), "cuda:80", store=store)
            return kernel.asm["cubin"]

        write = "open(sys.argv[sys.argv.index('-o') + 1], 'wb').write(b'\\x7fELF {}')"
        for number in ("one", "another", "one more"):
            assembler(write.format(number))
            assert made() == made() == b"\x7fELF " + number.encode()
        assert len(store.kept) == 4  # the texts, and the machine code of three

    def test_facts(self, assembler: Any) -> None:
        assembler(
            "open(sys.argv[sys.argv.index('-o') + 1], 'wb').write(b'\\x7fELF')\n"
            "print('ptxas info : 24 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads', file=sys.stderr)\n"
            "print('ptxas info : Used 40 registers, used 1 barriers, 2048 bytes smem', file=sys.stderr)"
        )
        made = ptxas.assemble(".version 8.0", "sm_90a")
        assert (made.by, made.registers, made.spilled_bytes, made.stack_bytes) == ("ptxas", 40, 24, 24)


class _Store:
    """A cache in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self.kept.get(key)

    def put(self, key: str, facts: dict[str, Any], blobs: dict[str, bytes]) -> None:
        self.kept[key] = (facts, blobs)


def _plainly(ptx: str, arch: str, **limits: Any) -> Any:
    return ptxas.assemble(ptx, arch)


class _Linker:
    """nvJitLink, as far as it is used; its log is that of the ptxas inside."""

    InputType = SimpleNamespace(PTX="ptx")
    nvJitLinkError = ValueError

    def __init__(self, refuses: str = "") -> None:
        self.refuses, self.options, self.open = refuses, list[str](), 0

    def create(self, count: int, options: list[str]) -> int:
        assert count == len(options)
        self.options, self.open = options, self.open + 1
        return 7

    def add_data(self, handle: int, kind: str, data: bytes, size: int, name: str) -> None:
        if self.refuses:
            raise self.nvJitLinkError("it failed")

    def complete(self, handle: int) -> None: ...

    def get_linked_cubin_size(self, handle: int) -> int:
        return 4

    def get_linked_cubin(self, handle: int, image: bytearray) -> None:
        image[:] = b"\x7fELF"

    def get_info_log_size(self, handle: int) -> int:
        return 200

    def get_info_log(self, handle: int, log: bytearray) -> None:
        text = b"ptxas . 56 bytes stack frame, 56 bytes spill stores, 48 bytes spill loads\nUsed 255 registers"
        log[: len(text)] = text

    def get_error_log_size(self, handle: int) -> int:
        return len(self.refuses)

    def get_error_log(self, handle: int, log: bytearray) -> None:
        log[:] = self.refuses.encode()

    def destroy(self, handle: int) -> None:
        self.open -= 1


@pytest.fixture
def no_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "find_tool", lambda name="ptxas": None)


def _put_linker(monkeypatch: pytest.MonkeyPatch, linker: Any) -> Any:
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(nvjitlink=linker))
    return linker


def test_without_ptxas_it_is_nvjitlink(no_ptxas: None, monkeypatch: pytest.MonkeyPatch) -> None:
    linker = _put_linker(monkeypatch, _Linker())
    made = ptxas.assemble(".version 8.0", "sm_90a", maxnreg=64)
    assert (made.by, made.image, made.registers, made.spilled_bytes) == ("nvjitlink", b"\x7fELF", 255, 104)
    assert linker.options[0] == "-arch=sm_90a" and "-maxrregcount=64" in linker.options and linker.open == 0
    linker = _put_linker(monkeypatch, _Linker("ptxas fatal : Unknown symbol 'x'\0"))
    assert "Unknown symbol 'x'" in _said(lambda: ptxas.assemble(".version 8.0", "sm_90a"), PTXASError)
    assert linker.open == 0


def test_without_either_it_is_the_driver(no_ptxas: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(*arguments: Any) -> int:
        raise RuntimeError("libnvJitLink.so is not there")

    for linker in (SimpleNamespace(create=create), None):
        if linker is None:
            monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace())
        else:
            _put_linker(monkeypatch, linker)
        made = ptxas.assemble(".version 8.0", "sm_90a")
        assert (made.by, made.image) == ("driver", b".version 8.0")
    kernel = weft.compile(_source(), target="cuda:80")
    monkeypatch.setattr(kernel, "load", lambda: SimpleNamespace(registers=32, local_bytes=16))
    assert (kernel.n_regs, kernel.n_spills) == (32, 4), "what the driver says once it has assembled it"
    with pytest.raises(Unsupported) as caught:
        kernel.asm["sass"]
    assert str(caught.value) == (
        "error: SASS of machine code that the driver makes is not supported\n"
        "hint: where ptxas is on PATH (or named by WEFT_PTXAS), Weft has the machine code itself"
    )
    assert "sass" in kernel.asm and "sass" not in dict(kernel.asm.items())


@pytest.mark.skipif(ptxas.find_tool("ptxas") is None, reason="ptxas is not installed")
def test_without_nvdisasm_there_is_no_sass(monkeypatch: pytest.MonkeyPatch) -> None:
    find = ptxas.find_tool
    monkeypatch.setattr(ptxas, "find_tool", lambda name="ptxas": None if name == "nvdisasm" else find(name))
    kernel = weft.compile(_source(), target="cuda:80")
    with pytest.raises(Unsupported) as caught:
        kernel.asm["sass"]
    assert str(caught.value) == (
        "error: SASS without nvdisasm, which is not found, is not supported\n"
        "hint: nvdisasm is one of the tools of the CUDA toolkit: put it on PATH, or its path into WEFT_NVDISASM"
    )
    assert kernel.asm["cubin"][:4] == b"\x7fELF"


def test_tools_are_found_as_the_environment_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WEFT_PTXAS", "TRITON_PTXAS_PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("path", "home/bin", "named"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "ptxas").write_text("#!/bin/sh\n")
        (tmp_path / folder / "ptxas").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert ptxas.find_tool() == str(tmp_path / "home" / "bin" / "ptxas")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert ptxas.find_tool() == str(tmp_path / "path" / "ptxas")
    before = ptxas.assembler()
    monkeypatch.setitem(os.environ, "TRITON_PTXAS_PATH", "")
    knobs.nvidia.ptxas = str(tmp_path / "named" / "ptxas")
    try:
        assert ptxas.find_tool() == str(tmp_path / "named" / "ptxas")
        assert ptxas.assembler() != before
    finally:
        knobs.nvidia.ptxas = knobs.env
    monkeypatch.setenv("WEFT_PTXAS", "elsewhere")
    assert ptxas.find_tool() == "elsewhere"


@pytest.mark.parametrize("option", ["launch_cooperative_grid", "launch_pdl"])
def test_options_of_the_launch_reach_the_kernel(option: str) -> None:
    kernel = weft.compile(_source(), target="cuda:90", options={option: True})
    assert getattr(kernel.metadata, option) is True
    assert len(loaded_kernel._attributes(kernel.metadata._asdict())) == loaded_kernel._ATTRIBUTE_BYTES
    assert getattr(weft.compile(_source(), target="cuda:90").metadata, option) is False


def test_a_process_that_was_forked_after_the_first_use(bindings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a call of the driver failed: CUDA_ERROR_3 " in _said(lambda: faults.check((3,)), LaunchError)
    monkeypatch.setattr(faults, "_CUDA", replace(faults._CUDA, process=-1))
    assert _said(lambda: faults.check((3,), "k"), LaunchError) == (
        "CUDA does not work in this process, which was forked from one that had used it (CUDA_ERROR_3 (what the driver "
        'says))\nhint: start workers by multiprocessing.get_context("spawn") or "forkserver"; or fork before the first '
        "use"
    )


def test_a_target_that_is_spelled_otherwise() -> None:
    for name, said in (
        ("sm_90", "did you mean cuda:90? "),
        ("cuda:90b", "did you mean cuda:90? "),
        ("sm_120", "did you mean cuda:120? "),
        ("sm_130", "the nearest that a GPU of capability 130 runs is cuda:121; "),
        ("sim:cuda:88", "the nearest is sim:cuda:87; "),
        ("npu:one", ""),
        ("cuda", ""),
    ):
        text = _said(lambda: weft.compile(_source(), target=name), Unsupported)
        assert text.startswith(f"error: compiling is not supported on target {name}\nhint: {said}targets that exist: ")


@pytest.mark.parametrize("registers", [np.int64(64), 64])
def test_registers_as_any_integer(registers: Any) -> None:
    assert weft.compile(_source(), "cuda:80", {"maxnreg": registers}).metadata.maxnreg == 64


def test_options_as_numbers_of_numpy() -> None:
    """It was a CompilerCrash."""
    options = {
        "num_warps": np.int64(8),
        "num_stages": np.int32(2),
        "num_ctas": np.int64(1),
        "enable_fp_fusion": np.False_,
    }
    for target in ("cuda:80", "cpu"):
        kernel = weft.compile(_source(), target, options)
        assert type(kernel.metadata.num_warps) is int
    assert weft.compile(_source(), "cuda:80", options).metadata.num_warps == 8


@pytest.mark.parametrize("option", ["launch_cooperative_grid", "launch_pdl"])
def test_an_option_of_the_launch_is_on_or_off(option: str) -> None:
    said = _said(lambda: weft.compile(_source(), "cuda:80", {option: "no"}), LaunchError)
    assert said == f"{option} must be True or False, got 'no'"


def test_a_tensor_map_of_strides_that_the_copy_engine_cannot_do() -> None:
    make = tensormaps.map_maker("a", [("f16", [64, 64], 128, [64, 64], -1)])
    for shape, strides, said in (
        ([64, 64], [-64, 1], "strides must be from 0 to less than 2^40 bytes, got (-128,)"),
        ([64, 64], [1 << 39, 1], "strides must be from 0 to less than 2^40 bytes, got (1099511627776,)"),
        (
            [(1 << 32) + 1, 64],
            [64, 1],
            "a tensor has from one element to 2^32 along each dimension, got (64, 4294967297)",
        ),
    ):
        array = weft.TensorDescriptor(np.zeros((64, 64), np.float16), shape, strides, [64, 64])
        assert _said(lambda: make((array, 4096)), LaunchError) == f"`a` makes no tensor map: {said}"

"""triton._internal_testing: what Triton's own tests ask of the machine and make their arrays with, on Weft's targets.

The questions are answered for the target of launches, a simulated one too: with `WEFT_TARGET=sim:cuda:90`,
`is_hopper()`.  It needs NumPy, PyTorch and pytest, as those tests do.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft import language as tl
from weft.language.signatures import str_to_ty
from weft.runtime import TensorWrapper, driver, knobs, reinterpret

from ._utils import type_canonicalisation_dict


def _torch() -> Any:
    """PyTorch, for those helpers that make tensors: it need not be installed for the others."""
    return importlib.import_module("torch")


pytest: Any = importlib.import_module("pytest")

# -- element types -----------------------------------------------------------------------------------------------------

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = [f"u{name}" for name in int_dtypes]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted({*dtypes_with_bfloat16} - {"int64", "uint64", "float64"})

# -- the machine -------------------------------------------------------------------------------------------------------


def get_current_target() -> Any:
    """The target of launches."""
    return driver.active.get_current_target()


def get_arch() -> str:
    """Its architecture: "90" of a GPU, the processor's name of the CPU."""
    return str(get_current_target().arch)


def is_interpreter() -> bool:
    """Do kernels run in Triton's interpreter?  Never: on the CPU they are compiled."""
    return False


def is_compile_warmup() -> bool:
    """Are kernels only compiled, and not run?"""
    return False


def _capability() -> int:
    """100 * major + 10 * minor of an NVIDIA GPU as the target has it (90 is 900); 0 elsewhere."""
    target = get_current_target()
    return 10 * int(target.arch) if target.backend == "cuda" else 0


def _capable(least: int, below: int = 1 << 30) -> Callable[[], bool]:
    """A question: is the target an NVIDIA GPU of a capability from `least` on, and below another?"""

    def asked() -> bool:
        return least <= _capability() < below

    asked.__doc__ = f"Is the target an NVIDIA GPU of capability {least} or more, and less than {below}?"
    return asked


is_cuda, is_ampere_or_newer, is_hopper_or_newer = _capable(1), _capable(800), _capable(900)
is_hopper, is_blackwell, is_sm12x = _capable(900, 1000), _capable(1000, 1200), _capable(1200, 1300)
is_blackwell_ultra, is_rubin = _capable(1030, 1031), _capable(1070, 1071)


def is_xpu() -> bool:
    """Is the target an Intel GPU?"""
    return bool(get_current_target().backend == "xpu")


def is_hip() -> bool:
    """Is the target an AMD GPU?"""
    return bool(get_current_target().backend == "hip")


def _amd(*names: str) -> Callable[[], bool]:
    """A question: is the target an AMD GPU of one of these architectures?"""

    def asked() -> bool:
        target = get_current_target()
        return target.backend == "hip" and any(re.match(name, str(target.arch)) for name in names)

    asked.__doc__ = f"Is the target an AMD GPU of {' or '.join(names)}?"
    return asked


is_hip_cdna2, is_hip_cdna3, is_hip_cdna4 = _amd("gfx90a"), _amd("gfx942"), _amd("gfx950")
is_hip_cdna = _amd("gfx90a", "gfx942", "gfx950")
is_hip_cdna3_or_newer = _amd("gfx942", "gfx950")
is_hip_gfx11, is_hip_gfx12, is_hip_gfx1250 = _amd("gfx11"), _amd("gfx12"), _amd("gfx1250")
is_hip_rdna3, is_hip_rdna4m, is_hip_rdna4 = _amd("gfx110", "gfx115"), _amd("gfx117"), _amd("gfx120")
is_hip_rdna = _amd("gfx110", "gfx115", "gfx117", "gfx120")


def get_hip_lds_size() -> int:
    """Bytes of shared memory of an AMD GPU."""
    return 163840 if is_hip_cdna4() else 65536


def supports_tma(byval_only: bool = False) -> bool:
    """Do descriptors work?  On the CPU always."""
    return not is_cuda() or is_hopper_or_newer()


def supports_ws() -> bool:
    """May loops ask for warp specialisation?  Where there are no warps they run as they are."""
    return not is_cuda() or is_hopper_or_newer()


def supports_clc() -> bool:
    """Is there cluster launch control?"""
    return _capability() >= 1000


def tma_skip_msg(byval_only: bool = False) -> str:
    """Why a test of descriptors is skipped."""
    return "descriptors need compute capability 9.0 or more"


requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


def skip_if_unsupported_cluster_size(num_ctas: int) -> None:
    """Skip a test of clusters where there are none."""
    if is_cuda() and num_ctas > 1 and not is_hopper_or_newer():
        pytest.skip("clusters need compute capability 9.0 or more")


# -- arrays ------------------------------------------------------------------------------------------------------------


def random_int(low: int, high: int, *, warmup_value: int | None = None, **kwargs: Any) -> int:
    """A number in low..high-1 of PyTorch's generator."""
    return int(_torch().randint(low, high, size=(), **kwargs).item())


def random_float(*, warmup_value: float = 0.5, **kwargs: Any) -> float:
    """A number in [0, 1) of PyTorch's generator."""
    return float(_torch().rand((), **kwargs).item())


def numpy_random(
    shape: int | Sequence[int],
    dtype_str: str,
    rs: np.random.RandomState | None = None,
    low: int | None = None,
    high: int | None = None,
) -> Any:
    """Random elements of a type, the same in every run if `rs` is not given; integers are never zero."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    rs = rs or np.random.RandomState(17)
    if dtype_str in integral_dtypes:
        bounds = np.iinfo(dtype_str)
        least = bounds.min if low is None else max(low, bounds.min)
        most = bounds.max if high is None else min(high, bounds.max)
        drawn = rs.randint(least, most, shape, dtype=getattr(np, dtype_str))
        drawn[drawn == 0] = 1
        return drawn
    if "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in float_dtypes:
        return rs.normal(0, 1, shape).astype(dtype_str)
    if dtype_str == "bfloat16":
        return (rs.normal(0, 1, shape).astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0.0
    raise RuntimeError(f"Unknown dtype {dtype_str}")


def to_triton(x: Any, device: Any, dst_type: str | None = None) -> Any:
    """A NumPy array as a tensor of PyTorch; of `dst_type` where NumPy has no such type."""
    name = x.dtype.name
    if name in uint_dtypes:  # as signed integers that say they are unsigned: not every PyTorch has the others
        return reinterpret(_torch().tensor(x.view(name[1:]), device=device), getattr(tl, name))
    tensor = _torch().tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return reinterpret(tensor, getattr(tl, dst_type))
    return tensor.bfloat16() if name == "float32" and dst_type == "bfloat16" else tensor


def str_to_triton_dtype(x: str) -> Any:
    """The element type of a name."""
    return str_to_ty(type_canonicalisation_dict[x], None)


def torch_dtype_name(dtype: Any) -> str:
    """The name of an element type of PyTorch or of the language."""
    if isinstance(dtype, tl.dtype):
        return dtype.name
    if isinstance(dtype, _torch().dtype):
        return str(dtype).removeprefix("torch.")
    raise TypeError(f"not a triton or torch dtype: {type(dtype)}")


def to_numpy(x: Any) -> Any:
    """A tensor as a NumPy array; one of bfloat16 as float32."""
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    if isinstance(x, _torch().Tensor):
        return x.cpu().float().numpy() if x.dtype is _torch().bfloat16 else x.cpu().numpy()
    raise ValueError(f"Not a triton-compatible tensor: {x}")


def unwrap_tensor(t: Any) -> Any:
    """The tensor in a wrapper that says another type."""
    return t.base if isinstance(t, TensorWrapper) else t


def default_alloc_fn(size: int, align: int, _: Any) -> Any:
    """Scratch memory for kernels, where the current target has its arrays."""
    on_gpu = is_cuda() and _torch().cuda.is_available()
    return _torch().empty(size, dtype=_torch().int8, device="cuda" if on_gpu else "cpu")


# -- processes and settings --------------------------------------------------------------------------------------------


@dataclass
class ProcessResult:
    """What came of a function that ran in a process of its own."""

    exc: BaseException | None
    driver_stderr_output: str


def _call_in_child(call: Any, path: str) -> BaseException | None:
    """Call a function with the file for what is written to stderr; what it raises."""
    function, args, kwargs, env = call
    before = dict(os.environ)
    os.environ.update(env)
    with open(path, "w+b") as stderr:
        os.dup2(stderr.fileno(), 2)
        try:
            function(*args, **kwargs)
        except Exception as error:
            return error
        finally:
            sys.stderr.flush()
            os.environ.clear()
            os.environ.update(before)
    return None


def _serve(calls: Any, first: Any) -> None:
    """What a child does: a call, and those that are sent to it after that."""
    asked = first
    while asked is not None:
        calls.send(_call_in_child(*asked))
        asked = calls.recv()


class _Child:
    """A process that calls functions for this one; the first is handed over as it is, others are pickled."""

    def __init__(self, call: Any) -> None:
        context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
        self._folder = tempfile.TemporaryDirectory()
        self._calls, theirs = context.Pipe()
        told = (theirs, (call, self._stderr))
        self._process = context.Process(target=_serve, args=told)  # type: ignore[attr-defined]
        self._process.start()
        theirs.close()

    @property
    def _stderr(self) -> str:
        return os.path.join(self._folder.name, "stderr")

    def send(self, call: Any) -> None:
        """Ask for another call."""
        self._calls.send((call, self._stderr))

    def result(self, name: str, limit: float) -> ProcessResult:
        """What came of the last one. TimeoutError where it takes too long, RuntimeError where the process ended."""
        if not self._calls.poll(limit):
            self.end(kill=True)
            raise TimeoutError(f"test subprocess {name} exceeded its {limit:g}-second timeout")
        try:
            outcome = self._calls.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self.end()
            raise RuntimeError(f"the process ended with {code} before it had a result") from None
        return ProcessResult(outcome, Path(self._stderr).read_text(errors="replace"))

    def end(self, kill: bool = False) -> None:
        """Let it end."""
        if kill:
            self._process.kill()
        with contextlib.suppress(OSError):
            self._calls.send(None)
        self._calls.close()
        self._process.join()
        self._folder.cleanup()


class _Pool:
    """The process that `use_process_pool` keeps, if there is one."""

    wanted = False
    child: _Child | None = None

    def run(self, call: Any, name: str, limit: float) -> ProcessResult:
        """Call a function in it; it is replaced after one that fails."""
        child, self.child = self.child, None
        if child is not None:
            try:
                child.send(call)
            except (pickle.PicklingError, AttributeError, TypeError, OSError):  # no name, or no process any more
                child.end(kill=True)
                child = None
        child = child or _Child(call)
        result = child.result(name, limit)
        if result.exc is None and self.wanted:
            self.child = child
        else:
            child.end()
        return result


_pool = _Pool()


def run_in_process(
    client_fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """Call a function in a process of its own; a ProcessResult with what it raised and wrote to stderr.

    TimeoutError after TRITON_TEST_PROCESS_TIMEOUT seconds (300).
    """
    if os.environ.get("DISABLE_SUBPROCESS"):
        return client_fn(*args, **(kwargs or {}))
    call = (client_fn, tuple(args), dict(kwargs or {}), dict(env or {}))
    return _pool.run(call, client_fn.__name__, float(os.environ.get("TRITON_TEST_PROCESS_TIMEOUT", "300")))


@contextmanager
def use_process_pool(preload_module: str) -> Iterator[None]:
    """Inside of it, functions that succeed run in one process after the other; one that fails is the last of its."""
    _pool.wanted = True
    try:
        yield
    finally:
        _pool.wanted, child, _pool.child = False, _pool.child, None
        if child is not None:
            child.end()


def _fresh_knobs_impl(skipped_attr: set[str] | None = None) -> tuple[Callable[[], Any], Callable[[], None]]:
    """(make, undo): `make` sets every setting back to its default, apart from groups that are named.

    The target stays: it says which machine the tests are for, as the GPU that is there does for Triton.
    """
    groups = {name: group for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs)}
    groups = {name: group for name, group in groups.items() if name not in ("weft", *(skipped_attr or ()))}
    variables = {v for group in groups.values() for knob in group.knob_descriptors.values() for v in knob.keys}
    variables.discard("WEFT_TARGET")
    patch = pytest.MonkeyPatch()
    values = {name: dict(vars(group)) for name, group in groups.items()}
    propagated = knobs.propagate_env

    def make() -> Any:
        for variable in variables:
            patch.delenv(variable, raising=False)
        for group in groups.values():
            group.reset()
        knobs.propagate_env = True
        return knobs

    def undo() -> None:
        for name, group in groups.items():
            vars(group).clear()
            vars(group).update(values[name])
        for variable in variables:
            os.environ.pop(variable, None)  # what was set meanwhile; what was there before comes back
        patch.undo()
        knobs.propagate_env = propagated

    return make, undo

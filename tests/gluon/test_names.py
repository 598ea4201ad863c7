"""Every name of Triton's Gluon 3.6.0 is there, and takes the same arguments."""

from __future__ import annotations

import importlib
import inspect

import pytest

import weft.gluon.language as gl
from weft import gluon

LANGUAGE = """
abs add allocate_shared_memory amd arange associative_scan assume atomic_add atomic_and atomic_cas atomic_max atomic_min
atomic_or atomic_xchg atomic_xor AutoLayout bank_conflicts base_type base_value bfloat16 block_type BlockedLayout
broadcast cast cdiv ceil CoalescedLayout constexpr convert_layout cos device_assert device_print distributed_type
DistributedLinearLayout div_rn dot_fma DotOperandLayout dtype erf exp exp2 expand_dims extra fdiv float16 float32
float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 floor fma fp4_to_fp full full_like gather histogram
inline_asm_elementwise int1 int16 int32 int64 int8 join load log log2 map_elementwise max max_constancy max_contiguous
maximum min minimum mul multiple_of num_ctas num_programs num_warps nvidia NVMMADistributedLayout NVMMASharedLayout
PaddedSharedLayout permute pointer_type program_id ravel reduce reduce_or reshape rsqrt set_auto_layout
shared_memory_descriptor shared_memory_descriptor_type SharedLinearLayout sin SliceLayout split sqrt sqrt_rn
static_assert static_print static_range store sub sum SwizzledSharedLayout tensor thread_barrier to_linear_layout
to_tensor tuple tuple_type uint16 uint32 uint64 uint8 umulhi void warp_specialize where xor_sum zeros zeros_like
"""
MODULES = {
    "nvidia.ampere": "async_copy mbarrier mma_v2",
    "nvidia.ampere.async_copy": "async_copy_global_to_shared mbarrier_arrive commit_group wait_group",
    "nvidia.ampere.mbarrier": "arrive init invalidate MBarrierLayout wait",
    "nvidia.hopper": "async_copy fence_async_shared mbarrier mma_v2 tma warpgroup_mma warpgroup_mma_wait "
    "warpgroup_mma_init",
    "nvidia.hopper.mbarrier": "arrive expect init invalidate MBarrierLayout wait",
    "nvidia.hopper.tma": "async_copy_global_to_shared async_copy_shared_to_global store_wait make_tensor_descriptor "
    "tensor_descriptor tensor_descriptor_type",
    "nvidia.blackwell": "allocate_tensor_memory async_copy fence_async_shared get_tmem_reg_layout mbarrier mma_v2 "
    "tensor_memory_descriptor TensorMemoryLayout TensorMemoryScalesLayout tma tcgen05_copy tcgen05_mma "
    "tcgen05_mma_scaled tcgen05_commit float2",
    "nvidia.blackwell.tma": "async_gather async_scatter async_copy_global_to_shared async_copy_shared_to_global "
    "store_wait tensor_descriptor tensor_descriptor_type make_tensor_descriptor",
    "nvidia.blackwell.float2": "pack2 unpack2 pack unpack full_like fma Float2Tensor",
    "amd": "AMDMFMALayout AMDWMMALayout cdna3 cdna4 rdna3 rdna4 gfx1250",
    "amd.cdna3": "buffer_atomic_add buffer_atomic_and buffer_atomic_min buffer_atomic_max buffer_atomic_or "
    "buffer_atomic_xor buffer_atomic_xchg buffer_load buffer_store mfma",
    "amd.cdna4": "buffer_atomic_add buffer_load buffer_store mfma async_copy mfma_scaled get_mfma_scale_layout",
    "amd.cdna4.async_copy": "global_load_to_shared buffer_load_to_shared commit_group wait_group load_shared_relaxed",
    "amd.rdna3": "wmma",
    "amd.rdna4": "wmma",
    "amd.gfx1250": "async_copy tdm mbarrier wmma wmma_scaled buffer_load buffer_store get_wmma_scale_layout",
    "amd.gfx1250.tdm": "async_load async_store async_wait make_tensor_descriptor tensor_descriptor "
    "tensor_descriptor_type",
    "amd.gfx1250.async_copy": "global_to_shared commit_group wait_group mbarrier_arrive",
    "amd.gfx1250.mbarrier": "MBarrierLayout init wait arrive",
}


def test_language() -> None:
    assert not [name for name in LANGUAGE.split() if not hasattr(gl, name)]
    assert not [name for name in LANGUAGE.split() if name not in gl.__all__]
    assert not [name for name in gl.__all__ if not hasattr(gl, name)]


@pytest.mark.parametrize("module", MODULES)
def test_module(module: str) -> None:
    found = importlib.import_module(f"weft.gluon.language.{module}")
    assert not [name for name in MODULES[module].split() if not hasattr(found, name)]


def test_package() -> None:
    assert not [n for n in ("jit", "constexpr_function", "must_use_result", "nvidia", "amd") if not hasattr(gluon, n)]
    assert gluon.nvidia.hopper.TensorDescriptor is gluon.nvidia.blackwell.TensorDescriptor
    methods = "load store slice index permute reshape _reinterpret _keep_alive dtype shape rank numel layout"
    assert not [name for name in methods.split() if not hasattr(gl.shared_memory_descriptor, name)]


def test_kernels_know_that_they_are_gluons() -> None:
    @gluon.jit
    def kernel(x):
        pass

    @gluon.jit(noinline=True, do_not_specialize=["x"])
    def other(x):
        pass

    assert kernel.is_gluon() and other.is_gluon() and other.noinline


def _parameters(function: object) -> list[tuple[str, object]]:
    hidden = ("_semantic", "_generator", "_builder")
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    return [(n, p.default) for n, p in signature.parameters.items() if n not in hidden]


OURS = {
    "arrive": ("from_cta",),
    "async_copy_global_to_shared": ("multicast",),
    "expect": ("bytes_per_cta", "from_cta"),
    "store_wait": ("read_only",),
}
"""Parameters that Triton 3.6.0 does not have; later versions do."""


def _differences(ours: object, theirs: object, names: list[str]) -> list[str]:
    found = []
    for name in names:
        mine, other = getattr(ours, name), getattr(theirs, name)
        if inspect.isclass(other) or inspect.ismodule(other) or getattr(mine, "__name__", "").startswith("blackwell."):
            continue
        fn = getattr(other, "fn", other)
        wanted, have = _parameters(fn), _parameters(mine)
        if [n for n, _ in have if n not in OURS.get(name, ())] != [n for n, _ in wanted]:
            found.append(f"{name}: {[n for n, _ in have]}, Triton has {[n for n, _ in wanted]}")
    return found


def test_parameters_as_in_triton() -> None:
    theirs = pytest.importorskip("triton.experimental.gluon.language", reason="compares with Triton")
    assert not _differences(gl, theirs, LANGUAGE.split())


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith(("nvidia.ampere", "nvidia.hopper"))])
def test_parameters_of_modules_as_in_triton(module: str) -> None:
    pytest.importorskip("triton", reason="compares with Triton")
    packages = ("weft.gluon.language", "triton.experimental.gluon.language")
    ours, theirs = (importlib.import_module(f"{package}.{module}") for package in packages)
    assert not _differences(ours, theirs, MODULES[module].split())


INNER = {
    "_core": "builtin _unwrap_if_constexpr tensor dtype base_value base_type where arange "
    "shared_memory_descriptor_type distributed_type shared_memory_descriptor load store constexpr tuple float16 "
    "warp_specialize pointer_type",
    "_layouts": "BlockedLayout DistributedLayout SharedLayout bases_per_dim warps_per_cta",
    "_math": "exp2 rsqrt umulhi",
    "_standard": "cdiv max sum zeros full_like",
    "amd._layouts": "AMDMFMALayout AMDWMMALayout",
}


@pytest.mark.parametrize("module", INNER)
def test_modules_that_programs_reach_into(module: str) -> None:
    found = importlib.import_module(f"weft.gluon.language.{module}") if "." in module else getattr(gl, module)
    assert not [name for name in INNER[module].split() if not hasattr(found, name)]


def test_warps_of_layouts() -> None:
    blocked = gl.BlockedLayout([1, 1], [8, 4], [2, 4], [1, 0])
    linear = gl.DistributedLinearLayout(
        [], [[1, 0], [2, 0], [4, 0], [0, 0], [0, 0]], [[8, 0], [0, 0], [0, 1]], [], [16, 2]
    )
    of = gl._layouts.warps_per_cta
    assert list(of(blocked, [16, 16])) == [2, 4]
    assert list(of(gl.SliceLayout(0, blocked), [16])) == [2, 4]
    assert list(of(gl.DotOperandLayout(0, blocked, 0), [16, 16])) == [2, 4]
    assert list(of(linear, [16, 2])) == [2, 2]
    assert gl._layouts.bases_per_dim([[8, 0], [0, 0], [0, 1]], 2, skip_broadcast=False) == [4, 2]
    assert gl._layouts.bases_per_dim([], 3) == [1, 1, 1]

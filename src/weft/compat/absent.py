"""Public names of Triton 3.6 to 3.8, and a few of Triton 2 that its tests still import, that Weft has nothing for: they
can be imported, and say so when they are used.

    from triton.runtime.build import compile_module_from_src
    compile_module_from_src(...)
    Unsupported: triton.runtime.build.compile_module_from_src, which belongs to building C and ..., is not supported

So a file that imports one for a part of its work runs all the rest.  Modules that Weft does not have are made of this
table; one that it has gets these names besides its own when it is imported under Triton's name.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from weft.base import Unsupported

UNSUPPORTED: dict[str, dict[str, str]] = {
    "building C and C++ with the system's compiler": {
        "triton.runtime.build": (
            "compile_module_from_file compile_module_from_src compile_so_from_file compile_so_from_src "
            "platform_key quiet"
        ),
        "triton.tools.build_extern": (
            "ExternLibrary LLVMDisassembler Libdevice Symbol build convert_type extern_libs to_unsigned"
        ),
        "triton.tools.compile": "CompileArgs compile_kernel parse_target",
        "triton.tools.link": (
            "HeaderParser KernelLinkerMeta LinkerError gen_signature gen_signature_with_full_args make_algo_decls "
            "make_default_algo_kernel make_func_pointers make_get_num_algos_decl make_get_num_algos_def "
            "make_global_decl make_kernel_hints_dispatcher make_kernel_load_def make_kernel_meta_const_dispatcher"
        ),
    },
    "Triton's launchers, which are C": {
        "triton.backends.driver": "decompose_descriptor expand_signature wrap_handle_tensordesc_impl",
        "triton.backends.nvidia.driver": (
            "CudaDriver CudaLauncher CudaUtils FLOAT_PACK_FUNCTION FLOAT_STORAGE_TYPE PyCUtensorMap "
            "TMA_DTYPE_DEVICE_TO_HOST include_dirs libcuda_dirs libdevice_dir libraries library_dirs "
            "make_launcher make_tensordesc_arg ty_to_cpp wrap_handle_tensordesc"
        ),
        "triton.compiler.make_launcher": "",
    },
    "the back end for AMD GPUs": {
        "triton.backends.amd": "",
        "triton.backends.amd.compiler": (
            "HIPBackend HIPOptions get_min_dot_size is_in_thread_transpose_enabled is_pingpong_schedule_enabled"
        ),
        "triton.backends.amd.driver": (
            "FLOAT_PACK_FUNCTION FLOAT_STORAGE_TYPE HIPDriver HIPLauncher HIPUtils PyTDMDescriptor include_dirs "
            "make_launcher make_tensordesc_arg ty_to_cpp wrap_handle_tensordesc"
        ),
    },
    "Triton's code generator, whose IR is MLIR's": {
        "triton.compiler.code_generator": (
            "ASTFunction BoundJITMethod CodeGenerator ContainsReturnChecker check_identifier_legality "
            "enter_sub_region flatten_values_to_ir mangle_fn normalize_value unflatten_ir_values"
        ),
    },
    "the inside of Triton's compiler and launcher": {
        "triton.compiler.compiler": (
            "CompileTimer arg_type_pattern convert_type_repr filter_traceback parse prototype_pattern "
            "ptx_arg_type_pattern ptx_prototype_pattern read_file"
        ),
        "triton.compiler": "get_cache_key",
        "triton.backends.nvidia.compiler": (
            "CUDAOptions file_hash get_features get_ptx_version_from_options get_ptxas get_ptxas_version "
            "min_dot_size ptx_get_version sm_arch_from_capability"
        ),
        "triton.runtime.cache": "get_cache_key make_so_cache_key",
        "triton.runtime.jit": (
            "DependenciesFinder INDENT_PATTERN compute_cache_key create_function_from_signature get_def_col_number "
            "get_def_line_number get_device_key serialize_specialization_data"
        ),
        "triton.experimental.gluon.language._semantic": "GluonCallerContext",
    },
    "the profiler Proton": {
        "triton.testing": "do_bench_cudagraph_proton do_bench_proton",
    },
    "NVIDIA's memory checker, which `make gpu-sanitize` runs": {
        "triton.testing": "cuda_memcheck",
    },
    "Triton's interpreter": {
        "triton._C.libtriton.interpreter": "MEM_SEMANTIC RMW_OP atomic_cas atomic_rmw load store",
        "triton.runtime.interpreter": (
            "ASTTransformer BlockPointerHandle ExtraFunctions FunctionRewriter GridExecutor InterpreterBuilder "
            "InterpreterOptions ReduceOps ReduceScanOpInterface ScanOps TensorDescHandle TensorHandle "
            "_implicit_cvt interpreter_builder interpreter_semantic np_erf_fp32 np_erf_fp64 np_umulhi_u64"
        ),
    },
    "MLIR as Triton binds it": {
        "triton._C.libtriton": "passes",
        "triton._C.libtriton.ir": "builder",
    },
    "back ends as Triton 2 had them, which compile C": {
        "triton.common": "",
        "triton.common.backend": "BaseBackend compute_core_version_key register_backend",
        "triton.compiler.make_launcher": "make_so_cache_key",
        "triton.runtime.driver": "DriverBase",
    },
    "LLVM as Triton binds it": {
        "triton._C.libtriton.llvm": "link_extern_libs optimize_module to_module translate_to_asm",
    },
    "the translator from Triton to Gluon": {
        "triton.tools.triton_to_gluon_translater": "",
        "triton.tools.triton_to_gluon_translater.translator": (
            "GLUON_IMPORT_LINES TritonToGluonTransformer convert_triton_to_gluon unparse_original_assignments"
        ),
        "triton.tools.triton_to_gluon_translater.translator_helpers": (
            "cat convert_host_descriptor current_target default_blocked_layout get_int_type "
            "get_num_threads_per_program get_num_threads_per_warp get_shared_memory_mma_layout "
            "get_shared_memory_mma_operand get_split_src_layout get_swizzle_byte_width reset_to_default_layout "
            "set_split_src_layout tl_arange tl_cat tl_dot tl_dot_blackwell tl_dot_decomposed_block_scales "
            "tl_dot_decomposed_broadcast_scale tl_dot_decomposed_extend_and_broadcast_scale "
            "tl_dot_decomposed_get_transposed_order tl_dot_decomposed_mask_nan tl_dot_decomposed_scale_arg "
            "tl_dot_decomposed_scale_to_16 tl_dot_get_expand_dims_layout tl_dot_get_permute_order "
            "tl_dot_get_reshape_shape tl_dot_mma_sync tl_dot_mma_sync_k_width tl_dot_mma_sync_layout "
            "tl_dot_mmav5_supported tl_dot_scaled tl_dot_scaled_blackwell tl_dot_scaled_mmav5_supported tl_full "
            "tl_load_tensor_descriptor tl_make_tensor_descriptor tl_obj_gather tl_obj_load tl_obj_scatter "
            "tl_obj_store tl_store_tensor_descriptor tl_trans"
        ),
        "triton.tools.triton_to_gluon_translator": (
            "DecoratorMatcher GlobalValue ReferenceRewriter RewriteFn convert_triton_to_gluon find_references "
            "get_base_value slice_kernel slice_kernel_from_trace translate_kernels translate_paths"
        ),
        "triton.tools.triton_to_gluon_translator.amd_helpers": (
            "AMDTensorDescriptorArgs compute_warp_bases convert_host_descriptor get_default_tdm_layout "
            "get_mfma_instr_k get_mfma_k_width get_mfma_layout get_wmma_k_width get_wmma_layout tl_dot "
            "tl_dot_mfma tl_dot_scaled tl_dot_wmma tl_make_tensor_descriptor tl_obj_gather tl_obj_gather_amd "
            "tl_obj_load tl_obj_load_amd tl_obj_scatter tl_obj_scatter_amd tl_obj_store tl_obj_store_amd"
        ),
        "triton.tools.triton_to_gluon_translator.blackwell_helpers": (
            "tl_dot tl_dot_blackwell tl_dot_decomposed_block_scales tl_dot_mmav5_supported tl_dot_scaled "
            "tl_dot_scaled_blackwell tl_dot_scaled_mmav5_supported tl_gather_tensor_descriptor tl_obj_gather "
            "tl_obj_scatter tl_scatter_tensor_descriptor"
        ),
        "triton.tools.triton_to_gluon_translator.common_helpers": (
            "build_expand_dims_layout cat_permute_order cat_result_shape convert_to_expand_dims_layout "
            "default_blocked_layout get_int_type get_num_threads_per_program get_num_threads_per_warp "
            "get_split_src_layout get_swizzle_byte_width reset_to_default_layout set_split_src_layout tl_arange "
            "tl_cat tl_dot_decomposed_block_scales_impl tl_dot_decomposed_broadcast_scale "
            "tl_dot_decomposed_deduce_scale_factor tl_dot_decomposed_extend_and_broadcast_scale "
            "tl_dot_decomposed_get_transposed_order tl_dot_decomposed_mask_nan tl_dot_decomposed_scale_arg "
            "tl_dot_decomposed_scale_to_16 tl_dot_get_expand_dims_layout tl_dot_get_permute_order "
            "tl_dot_get_reshape_shape tl_full tl_trans"
        ),
        "triton.tools.triton_to_gluon_translator.hopper_helpers": (
            "tl_dot tl_dot_mmav3 tl_dot_mmav3_supported tl_dot_scaled tl_obj_gather tl_obj_scatter"
        ),
        "triton.tools.triton_to_gluon_translator.inline_helpers": "defs",
        "triton.tools.triton_to_gluon_translator.nvidia_helpers": (
            "convert_host_descriptor get_shared_memory_mma_layout get_shared_memory_mma_operand tl_dot_mma_sync "
            "tl_dot_mma_sync_k_width tl_dot_mma_sync_layout tl_load_tensor_descriptor tl_make_tensor_descriptor "
            "tl_obj_load tl_obj_store tl_store_tensor_descriptor"
        ),
        "triton.tools.triton_to_gluon_translator.scoped_dict": "scoped_dict",
        "triton.tools.triton_to_gluon_translator.slice_kernel": (
            "AnnotationRewriter DecoratorMatcher FilterFn GlobalValue GlobalVariable LocalMarker Reference "
            "ReferenceRewriter ReferenceScanner RewriteFn RewriteSpec SliceRewriter add_sugar_rewrites "
            "bind_import_aliases bind_import_from_stmt bind_import_stmt find_jit_functions find_module "
            "find_references get_assign_target get_base_value get_import_binding get_import_from_binding "
            "get_name_ref_module get_reference is_ignored_decorator is_stdlib_module is_submodule "
            "load_module_from_file logger main mangle_name mangle_reference_names match_regex parse_expr "
            "resolve_module_alias resolve_name_ref slice_kernel slice_kernel_from_trace sugar_rewrite"
        ),
        "triton.tools.triton_to_gluon_translator.target": "TranslatorTarget",
        "triton.tools.triton_to_gluon_translator.translator": (
            "Translator add_expr_rewrites add_one_to_one_rewrites add_translator_helper_rewrites "
            "convert_triton_to_gluon expr_rewrite main one_to_one_rewrite translate_kernels translate_paths "
            "translator_helper_rewrite"
        ),
    },
    "GSan, which finds races in global memory on a GPU": {
        "triton._C.libtriton.gsan_testing": (
            "GLOBAL_STATE_SIZE_BYTES PER_DEVICE_STATE_STRIDE_BYTES SHADOW_CELL_SIZE_BYTES "
            "SHADOW_GRANULARITY_BYTES ScalarClock shadow_cell_address thread_state_address thread_state_stride_bytes"
        ),
        "triton.experimental.gsan": "ShareableHandleType configure create_mem_pool freeze_config get_allocator",
        "triton.experimental.gsan._allocator": (
            "ShareableHandleType configure create_mem_pool export_allocation_handles "
            "export_allocation_memhandle_regions export_runtime_state_handle free_allocation freeze_config "
            "get_allocator get_device_rank get_global_state_pointer get_reserve_pointer get_reserve_size "
            "get_shadow_granularity_bytes gsan_free gsan_malloc import_allocation_handles import_runtime_state_handle"
        ),
        "triton.experimental.gsan._stream_sync": "synchronize_process_group_barrier",
        "triton.experimental.gsan._testing_utils": (
            "SHADOW_GRANULARITY_BYTES atomic_poll global_state global_state_tensor load_one_i32 nanosleep "
            "shadow_cell_from_address shadow_cell_tensor_from_address shadow_tensor_for store_one_i32 "
            "thread_state_from_smid thread_state_tensor"
        ),
        "triton.experimental.gsan._utils": "uint8_cuda_tensor_from_ptr",
        "triton.experimental.gsan.symmetric_memory": ("GSanSymmetricMemoryHandle configure empty rendezvous"),
    },
    "what Triton's main branch had beyond 3.8 in September 2026": {
        "triton.experimental.gluon.language": "CachePolicy",
        "triton.experimental.gluon.language.nvidia.fabric": "SynchronizedBuffer barrier bind",
        "triton.experimental.gluon.language.nvidia.hopper.bulk": "async_load",
        "triton.experimental.gluon.nvidia.fabric": "GluonSynchronizedBuffer SynchronizedBuffer",
        "triton.experimental.gluon.tools": "",
        "triton.experimental.gluon.tools.ragged_tma": (
            "create_ragged_descriptor_device_2d create_ragged_descriptor_device_3d create_ragged_descriptor_host "
            "to_ragged_coords"
        ),
    },
    "the runner of Triton's own tests": {
        "triton._compile_warmup": (
            "CompilationTrace _require_complete_warmup compile_warmup compile_warmup_only "
            "process_pool_compile_warmup pytest_addoption pytest_collection_modifyitems pytest_runtest_call "
            "pytest_xdist_setupnodes summarize_compile_trace"
        ),
        "triton._compile_warmup_pool": "ProcessPoolWarmupDispatcher SharedWarmupCoordinator _jit_dumps",
        "triton._test_runner": "IMPORT_PATHS PHASES ROOT",
    },
}
"""What it is that Weft does not have: the modules of it, and their names."""

MODULES: dict[str, dict[str, str]] = {}
"""module -> name -> what it belongs to."""
for _what, _found in UNSUPPORTED.items():
    for _module, _names in _found.items():
        MODULES.setdefault(_module, {}).update(dict.fromkeys(_names.split(), _what))


class _NoAttribute(Unsupported, AttributeError):
    """An attribute of an unsupported name: `hasattr` says that there is none."""


class _Unsupported(type):
    """The class of such names: classes themselves, so that `isinstance` and subclasses work; nothing else does."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refusal(cls)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python and tools look for in any object
            raise AttributeError(name)
        raise _refusal(cls, _NoAttribute)

    def __iter__(cls) -> NoReturn:
        raise _refusal(cls)

    def __getitem__(cls, key: Any) -> NoReturn:
        raise _refusal(cls)


def _refusal(name: _Unsupported, kind: type[Unsupported] = Unsupported) -> Unsupported:
    origin = next(base for base in reversed(name.__mro__) if type(base) is _Unsupported)  # it may be a subclass
    return kind(
        f"{origin.__module__}.{origin.__name__}, which belongs to {origin.__doc__},",
        hint="Weft, which runs as triton here, has nothing for it",
    )


def add_names(module: ModuleType, name: str) -> None:
    """Give a module the names that Triton's module `name` has besides."""
    for name_there, owner in MODULES.get(name, {}).items():
        if name_there not in vars(module):
            setattr(module, name_there, _Unsupported(name_there, (), {"__module__": name, "__doc__": owner}))


def make_module(name: str) -> ModuleType:
    """A module that consists of such names."""
    module = ModuleType(name, f"Names of {name} that Weft has nothing for.")
    module.__path__ = []
    add_names(module, name)
    return module

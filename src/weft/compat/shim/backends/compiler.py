"""triton.backends.compiler."""

from __future__ import annotations

import hashlib
from enum import Enum
from types import SimpleNamespace
from typing import Any, ClassVar

from weft.compiler import GPUTarget as GPUTarget, as_target, host_cpu, make_options
from weft.runtime import compiler_key


class Language(Enum):
    """What a kernel is written in."""

    TRITON = 0
    GLUON = 1


class BaseBackend:
    """What back ends have in common."""

    supports_native_tensor_specialization = True

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Is the target this back end's?"""
        return False

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The attributes that a letter of a specialisation key stands for."""
        return [["tt.divisibility", 16]] if "D" in desc else []

    @staticmethod
    def get_int_specialization(arg: int, **kwargs: Any) -> str:
        """The key of an integer."""
        return "D" if arg % 16 == 0 and kwargs.get("align", False) else ""

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        """The key of an array."""
        return "D" if arg.data_ptr() % 16 == 0 and kwargs.get("align", False) else ""

    get_arg_specialization = get_tensor_specialization


class _OwnBackend(BaseBackend):
    """What the back ends that are here have in common."""

    name = ""

    def __init__(self, target: Any = None) -> None:
        super().__init__(as_target(target))

    @classmethod
    def _machine(cls) -> str:
        return ""

    def hash(self) -> str:
        """A digest of the compiler and, for the CPU, of the machine."""
        return hashlib.sha256(f"{compiler_key()}{self.target}{self._machine()}".encode()).hexdigest()

    def parse_options(self, opts: dict[str, Any]) -> Any:
        """Options, checked, as attributes."""
        options = make_options(opts)
        return SimpleNamespace(
            **{"extern_libs": (), "backend_name": self.name, **vars(options.language), **vars(options.backend)},
            language=options.language,
        )

    def pack_metadata(self, metadata: Any) -> tuple[Any, ...]:
        """What a launcher is told."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def load_dialects(self, context: Any) -> None:
        """Dialects need no loading."""

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """The smallest dot a target has: any."""
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self) -> dict[str, Any]:
        """Modules that stand in for others: none."""
        return {}


class CPUBackend(_OwnBackend):
    """The CPU, as tools written for Triton ask for it."""

    binary_ext = "object"
    name = "cpu"

    @classmethod
    def _machine(cls) -> str:
        return host_cpu().fingerprint()

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Is it the CPU?"""
        return target.backend == "cpu"


_OF_LAUNCHES: dict[str, Any] = {
    "maxnreg": None,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "ptx_version": None,
    "ptx_options": None,
    "ir_override": None,
    "enable_reflect_ftz": True,
    "instrumentation_mode": "",
}
"""Options that Triton has for NVIDIA GPUs besides the language's: tools tell them from parameters by these names."""


class GPUBackend(_OwnBackend):
    """What the back ends for GPUs have in common."""

    launch_options: ClassVar[dict[str, Any]] = {}

    def arch(self) -> str:
        """What the option `arch` is where nobody says it."""
        raise NotImplementedError

    def parse_options(self, opts: dict[str, Any]) -> Any:
        """Options, checked, as attributes; stages, and how exact products of float32 are, as the GPU has them where
        nobody says it."""
        machine = self.target.machine
        usual = {"num_stages": machine.stages, "default_dot_input_precision": machine.float32_products}
        options = super().parse_options({**usual, **opts})
        for name, default in {"warp_size": self.target.warp_size, **self.launch_options, "arch": self.arch()}.items():
            setattr(options, name, opts.get(name, default))
        return options


class CUDABackend(GPUBackend):
    """NVIDIA GPUs, as tools written for Triton ask for them."""

    binary_ext = "cubin"
    name = "cuda"
    launch_options = _OF_LAUNCHES

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Is it an NVIDIA GPU?"""
        return target.backend == "cuda"

    def arch(self) -> str:
        """What the option `arch` is: sm90."""
        return f"sm{self.target.arch}"

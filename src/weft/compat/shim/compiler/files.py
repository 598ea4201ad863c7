"""triton.compile: Weft's compiler, which leaves beside its cache the files that Triton's leaves in it.

    <TRITON_CACHE_DIR>/<key in base 32>/<kernel>.cubin, .ptx, .llir, .ttir, .json

PyTorch's Inductor launches kernels for GPUs out of the first, by a launcher of its own in C++, and keeps all of them in
the caches of its graphs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft import runtime
from weft.base import CacheWarning
from weft.runtime.cache import default_store

from ..runtime.cache import get_cache_manager

TEXTS = ("ptx", "llir", "ttir")


def compile(
    src: Any, target: Any = None, options: Mapping[str, Any] | None = None, _env_vars: Mapping[str, str] | None = None
) -> Any:
    """Compile an `ASTSource`, an `IRSource` or a file of tile IR; for a GPU, to machine code. See `weft.compile`.

    PTXASError where the assembler refuses what the compiler made.
    """
    kernel = runtime.compile(src, target, options, _env_vars)
    if not hasattr(kernel, "assemble") or kernel.assemble().by == "driver":
        return kernel  # without an assembler the driver makes machine code when it loads the kernel
    if len(kernel.asm["cubin"]) and default_store() is not None:
        try:
            _keep(kernel)
        except OSError as error:
            warnings.warn(
                f"the files of {kernel.name} cannot be written ({error.strerror or error}); there are none",
                CacheWarning,
                stacklevel=2,
            )
    return kernel


def _keep(kernel: Any) -> None:
    """Write the files of a kernel, where its machine code is not there as it is; `metadata_group` names them."""
    name = kernel.src.name[:150]
    manager = get_cache_manager(kernel.hash)
    group = manager.get_group(f"{name}.json")
    cubin = None if group is None else group.get(f"{name}.cubin")
    if group is None or cubin is None or Path(cubin).read_bytes() != kernel.asm["cubin"]:
        texts = {f"{name}.{stage}": kernel.asm[stage].encode("utf-8", "surrogatepass") for stage in TEXTS}
        facts = json.dumps(kernel.metadata._asdict(), default=lambda value: getattr(value, "__dict__", str(value)))
        files = {**texts, f"{name}.json": facts.encode(), f"{name}.cubin": kernel.asm["cubin"]}
        group = {file: manager.put(content, file) for file, content in files.items()}
        manager.put_group(f"{name}.json", group)
    kernel.metadata_group = group

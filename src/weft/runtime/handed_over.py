"""What `kernel.to_gluon` gives: a file of Gluon source, and the kernel in it."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.backends.own_folder import own_folder
from weft.writing import GluonSource

__all__ = ["HandedOver"]


@dataclass(frozen=True)
class HandedOver(GluonSource):
    """A Python file with a kernel in Gluon; `kernel` is that kernel."""

    own: str = ""
    """The same file with Gluon from Weft."""
    arguments: Sequence[Any] = ()
    """What `kernel` is to be launched with: the arguments that the source was made for, descriptors in parts."""

    def save(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_text(self.text, encoding="utf-8")

    @cached_property
    def kernel(self) -> Any:
        """The kernel, loaded, to be launched with `options`."""
        with tempfile.NamedTemporaryFile(
            "w", suffix=".py", prefix=f"{self.name}_", dir=own_folder(), delete=False, encoding="utf-8"
        ) as file:
            file.write(self.own)
        path = Path(file.name)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, self.name)

"""Errors under the names that Triton gives them, and those that only the runtime raises."""

from __future__ import annotations

from weft.base import (
    CompilationError as CompilationError,
    CompileTimeAssertionFailure as CompileTimeAssertionFailure,
    OutOfResources as OutOfResources,
    PTXASError as PTXASError,
    UnknownKeyword as UnknownKeyword,
    UnsupportedLanguageConstruct as UnsupportedLanguageConstruct,
    WeftError,
)

TritonError = WeftError


class AutotunerError(WeftError):
    """The autotuner has nothing to choose from, or cannot choose."""

    def __str__(self) -> str:
        return f"Autotuner error: {self.message}"


class InterpreterError(WeftError):
    """Triton's interpreter failed; Weft has none, the name is for `except` clauses."""

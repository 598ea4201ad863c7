"""Errors under the names that Triton gives them, and those that only the runtime raises."""

from __future__ import annotations

from weft.base import (
    CompilationError as CompilationError,
    CompileTimeAssertionFailure as CompileTimeAssertionFailure,
    LaunchError,
    OutOfResources as OutOfResources,
    PTXASError as PTXASError,
    UnsupportedLanguageConstruct as UnsupportedLanguageConstruct,
    WeftError,
)

TritonError = WeftError


class UnknownKeyword(LaunchError, KeyError):
    """A launch names something that is neither a parameter of the kernel nor an option."""


class AutotunerError(WeftError):
    """The autotuner has nothing to choose from, or cannot choose."""

    def __str__(self) -> str:
        return f"Autotuner error: {self.message}"


class InterpreterError(WeftError):
    """Triton's interpreter failed; Weft has none, the name is for `except` clauses."""

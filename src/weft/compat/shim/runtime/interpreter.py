"""triton.runtime.interpreter: there is none; the names are for isinstance checks."""

from weft.runtime.errors import InterpreterError as InterpreterError


class InterpretedFunction:
    """A function run by Triton's interpreter; Weft compiles for the CPU instead, so nothing is one."""

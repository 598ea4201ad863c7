"""The state of a launch: what is left of its grid, and what went wrong, as generated code and its callers see it.

    struct {i64 next, total, chunk; i32 nx, ny, nz, threads; i64 error, error_pid; ptr printer, table, whole}

`threads` is how many threads have a number (`Context.thread_number`), `printer` the Python function that prints,
`table` that of `Signals`, and `whole` the state that this one is a part of, if it is: who leaves that leaves this.
"""

import struct

STATE_FORMAT = "qqqiiiiqqQQQ"
STATE_BYTES = struct.calcsize("<" + STATE_FORMAT)
NEXT, TOTAL, CHUNK, NX, NY, NZ, THREADS = 0, 8, 16, 24, 28, 32, 36
ERROR, ERROR_PID, PRINTER, TABLE, WHOLE = range(40, STATE_BYTES, 8)
"""Offsets in bytes."""
REPORT_WORDS = 5
"""struct {i64 found, pid, place, values[2]} behind the arguments of a kernel with checks."""

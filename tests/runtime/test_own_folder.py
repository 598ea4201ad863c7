"""Files that live as long as the process: removed by the process that made them, and by no other."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def run(source: str, folder: Path) -> str:
    """What a process prints whose temporary files are in `folder`."""
    command = [sys.executable, "-c", textwrap.dedent(source)]
    found = subprocess.run(
        command, env={**os.environ, "TMPDIR": str(folder)}, text=True, capture_output=True, check=True
    )
    return found.stdout.strip()


def test_the_folder_goes_with_its_process_and_not_with_a_forked_one(tmp_path: Path) -> None:
    printed = run(
        """
        import os, sys
        from weft.backends.own_folder import own_folder

        file = own_folder() / "file"
        file.write_text("kept")
        child = os.fork()
        if not child:
            sys.exit(own_folder() != file.parent)
        print(os.waitpid(child, 0)[1], file.read_text(), oct(file.parent.stat().st_mode & 0o777))
        """,
        tmp_path,
    )
    assert printed == "0 kept 0o700"
    assert not list(tmp_path.iterdir())


def test_source_that_is_launched_leaves_no_file(tmp_path: Path) -> None:
    kernel = tmp_path / "copied.py"
    kernel.write_text(
        "import weft\nimport weft.language as tl\n\n@weft.jit\ndef copied(out, x, N: tl.constexpr):\n"
        "    at = tl.arange(0, N)\n    tl.store(out + at, tl.load(x + at))\n",
        encoding="utf-8",
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    printed = run(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import numpy, weft, copied

        x, out = numpy.arange(16, dtype=numpy.float32), numpy.zeros(16, numpy.float32)
        source = copied.copied.to_gluon(out, x, N=16, target="cuda:90")
        with weft.target("sim:cuda:90"):
            source.kernel[(1,)](out, x, N=16, **source.options)
        print((out == x).all())
        """,
        temporary,
    )
    assert printed == "True"
    assert not list(temporary.iterdir())

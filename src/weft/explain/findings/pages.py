"""The pages of findings: for each code what it means, a whole kernel that has it, and the same kernel fixed.

They are docs/reference/findings of the source; an installed package has them beside this file (pyproject.toml).
"""

from __future__ import annotations

from importlib import resources

__all__ = ["page_of"]

FOLDERS = ("pages", "../../../../docs/reference/findings")
"""Beside this file, where there are any: in an installed package, and in the source."""


def page_of(code: str) -> str:
    """The page of a code, in Markdown. LookupError where there is none.

    >>> page_of("narrow-access").splitlines()[0]
    '# narrow-access'
    """
    here = resources.files(__package__)
    folder = next(folder for folder in map(here.joinpath, FOLDERS) if folder.is_dir())
    codes = sorted(page.name.removesuffix(".md") for page in folder.iterdir() if page.name.endswith(".md"))
    if code not in codes:
        raise LookupError(f"there is no finding {code!r}; there are {', '.join(codes)}")
    return (folder / f"{code}.md").read_text(encoding="utf-8")

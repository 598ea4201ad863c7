"""Findings: what takes time in a kernel or goes wrong, each by a rule with a stable code. See `rule`."""

from . import (
    arithmetic as arithmetic,
    loops as loops,
    machine as machine,
    memory as memory,
    narrow as narrow,
    shared as shared,
    threads as threads,
    vectors as vectors,
)
from .pages import page_of as page_of
from .rule import RULES as RULES, Facts as Facts, findings_of as findings_of, rule as rule

__all__ = ["RULES", "Facts", "findings_of", "page_of", "rule"]

"""LLVM IR as text, and what every target's emission shares."""

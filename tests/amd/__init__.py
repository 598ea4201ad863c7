"""Proofs of the AMD target that need no GPU: an emulator, a checker of waits, counts of instructions."""

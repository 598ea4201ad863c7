"""Tests that run on an NVIDIA GPU; skipped, saying why, where there is none. `make gpu-test` runs them."""

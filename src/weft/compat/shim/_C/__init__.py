"""triton._C: what Weft has in the place of Triton's compiled library."""

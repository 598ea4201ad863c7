"""What the compiler tells of its decisions: the whole text of each kind on kernels whose answer is known by hand, and
that what is told is so."""

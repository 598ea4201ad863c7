"""What programs of the host hand to kernels for AMD's GPUs alone."""

"""What only NVIDIA's GPUs have."""

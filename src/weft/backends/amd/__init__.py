"""AMD GPUs: code objects, and the HIP library that loads and launches them."""

"""The CPU back end: laws of its parts, memory byte for byte, other processors, sizes."""

"""Facts about machines: sizes, costs, instructions. Nothing here asks the machine it runs on."""

from .cpu import CPU, FEATURES, NEON, PRODUCTS, Product, family_of

__all__ = ["CPU", "FEATURES", "NEON", "PRODUCTS", "Product", "family_of"]

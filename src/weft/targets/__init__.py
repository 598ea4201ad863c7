"""Facts about machines: sizes, costs, instructions. Nothing here asks the machine it runs on."""

from .cpu import CPU, DOTPROD, NEON, PRODUCTS, Product

__all__ = ["CPU", "DOTPROD", "NEON", "PRODUCTS", "Product"]

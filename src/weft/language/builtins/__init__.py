"""The builtins of the language by family; `weft.language.core` gathers them."""

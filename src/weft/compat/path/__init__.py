"""A directory for `sys.path`: its package `triton` is Weft, in processes that are started with this process's path."""

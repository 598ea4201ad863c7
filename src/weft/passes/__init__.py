"""Passes over tile IR: each file rewrites one thing, `pipelines` lists them in order."""

from .pipelines import cpu_pipeline

__all__ = ["cpu_pipeline"]

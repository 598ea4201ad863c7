"""Passes over tile IR: each file rewrites one thing, `pipelines` lists them in order."""

from .pipelines import cpu_pipeline as cpu_pipeline, tile_pipeline as tile_pipeline

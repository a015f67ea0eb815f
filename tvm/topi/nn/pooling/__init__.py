"""Pooling."""

from .compute import adaptive_pool, global_pool, pool1d, pool2d, window_count

__all__ = ["adaptive_pool", "global_pool", "pool1d", "pool2d", "window_count"]

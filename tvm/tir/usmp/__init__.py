"""Unified static memory planning: every allocation of a model at an offset of a pool."""

from . import algorithms, analysis, transform, utils

__all__ = ["algorithms", "analysis", "transform", "utils"]

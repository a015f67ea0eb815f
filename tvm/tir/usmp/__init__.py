"""Unified static memory planning: every allocation of a model at an offset of a pool."""

from . import algorithms, analysis, transform, utils
from .utils import BufferInfo

__all__ = ["BufferInfo", "algorithms", "analysis", "transform", "utils"]

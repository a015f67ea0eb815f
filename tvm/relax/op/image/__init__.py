"""Operators of images."""

from .image import grid_sample, resize2d

__all__ = ["grid_sample", "resize2d"]

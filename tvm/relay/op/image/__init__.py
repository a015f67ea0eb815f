"""Operators on images."""

from .image import Resize2DAttrs, resize2d

__all__ = ["Resize2DAttrs", "resize2d"]

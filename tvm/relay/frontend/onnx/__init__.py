"""The ONNX importer."""

from . import math, movement, nn, recurrent, reduction  # noqa: F401 - they register converters
from .importer import from_onnx

__all__ = ["from_onnx"]

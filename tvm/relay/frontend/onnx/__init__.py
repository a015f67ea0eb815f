"""The ONNX importer."""

from . import math, movement, nn, recurrent, reduction
from .importer import from_onnx

__all__ = ["from_onnx"]

"""The ONNX importer."""

from . import control, math, movement, nn, quantized, recurrent, reduction, sequences
from .model import from_onnx

__all__ = ["from_onnx"]

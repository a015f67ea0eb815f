"""Models of other frameworks, and models written in Python, as modules of relax."""

from . import nn, onnx, torch
from .common import detach_params

__all__ = ["detach_params", "nn", "onnx", "torch"]

"""ONNX models as modules of relax."""

from .onnx_frontend import from_onnx

__all__ = ["from_onnx"]

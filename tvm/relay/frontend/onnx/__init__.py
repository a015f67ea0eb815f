"""The ONNX importer."""

from . import (
    attention,
    control,
    math,
    microsoft,
    movement,
    nn,
    pooling,
    quantized,
    recurrent,
    reduction,
    resampling,
    search,
    sequences,
    signals,
    training,
)
from .model import from_onnx

__all__ = ["from_onnx"]

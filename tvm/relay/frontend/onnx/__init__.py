"""The ONNX importer."""

from . import (
    attention,
    classical,
    control,
    math,
    microsoft,
    movement,
    nn,
    pooling,
    quantized,
    random,
    recurrent,
    reduction,
    resampling,
    search,
    sequences,
    signals,
    text,
    training,
    trees,
)
from .model import from_onnx

__all__ = ["from_onnx"]

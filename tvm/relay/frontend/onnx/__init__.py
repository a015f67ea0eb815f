"""The ONNX importer."""

from . import (
    algebra,
    attention,
    classical,
    compressed,
    control,
    early,
    experts,
    fusions,
    math,
    microsoft,
    movement,
    nn,
    packed,
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

"""The ONNX importer."""

from . import (
    attention,
    classical_ml,
    control,
    experimental,
    fusions,
    image,
    image_decoder,
    linalg,
    math,
    microsoft,
    mixture_of_experts,
    movement,
    nn,
    packed_attention,
    pooling,
    quantized,
    random,
    recurrent,
    reduction,
    search,
    sequences,
    signals,
    tfidf,
    training,
    tree_ensembles,
    weight_only_quantized,
)
from .model import from_onnx

__all__ = ["from_onnx"]

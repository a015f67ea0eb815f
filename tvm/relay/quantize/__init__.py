"""Quantisation of trained networks: values in 8 bits, scales from a constant or from examples."""

from .calibrate import Thresholds, collect_inputs, input_threshold, weight_threshold
from .config import QAnnotateKind, QConfig, current_qconfig, kind2str, qconfig
from .quantize import prerequisite_optimize, quantize

__all__ = [
    "QAnnotateKind",
    "QConfig",
    "Thresholds",
    "collect_inputs",
    "current_qconfig",
    "input_threshold",
    "kind2str",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
    "weight_threshold",
]

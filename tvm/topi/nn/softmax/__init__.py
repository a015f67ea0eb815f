"""Softmax."""

from .compute import fast_softmax, log_softmax, softmax, softmax_common

__all__ = [
    "fast_softmax",
    "log_softmax",
    "softmax",
    "softmax_common",
]

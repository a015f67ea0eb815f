"""Models compiled for tensors of PyTorch."""

from .jit import TorchModule

__all__ = ["TorchModule"]

"""The PyTorch (TorchScript) importer."""

from . import attention, composed, movement, nn, pointwise, recurrent, reduction
from .importer import from_pytorch

__all__ = ["from_pytorch"]

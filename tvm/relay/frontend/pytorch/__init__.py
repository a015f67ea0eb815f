"""The PyTorch (TorchScript) importer."""

from . import attention, composed, creation, movement, nn, pointwise, recurrent, reduction
from .importer import from_pytorch

__all__ = ["from_pytorch"]

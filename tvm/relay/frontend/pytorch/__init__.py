"""The PyTorch (TorchScript) importer."""

from . import attention, movement, nn, pointwise, recurrent, reduction  # noqa: F401 - they register
from .importer import from_pytorch

__all__ = ["from_pytorch"]

"""``torch.compile(model, backend="classic_tvm")``: PyTorch's graphs compiled by this package."""

from .backend import pytvm

__all__ = ["pytvm"]

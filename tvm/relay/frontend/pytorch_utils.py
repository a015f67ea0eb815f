"""Helpers of programs that import from PyTorch, under their classic names."""

from __future__ import annotations

from typing import Any


def is_version_greater_than(ver: str) -> bool:
    """Whether the PyTorch that is installed is newer than a version."""
    import torch
    from torch.torch_version import TorchVersion

    base = torch.__version__.partition("+")[0].partition("a")[0]
    return bool(TorchVersion(base) > TorchVersion(ver.partition("+")[0]))


def getattr_attr_name(node: Any) -> str:
    """The attribute that a node ``prim::GetAttr`` of a TorchScript graph reads."""
    return str(node.s("name"))

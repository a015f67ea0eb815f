"""Single operators by oneDNN; whole models go through :mod:`tvm.relay.contrib.dnnl`."""

from __future__ import annotations

from typing import Any

from tvm import te
from tvm.topi.nn.conv2d.library import dnnl_conv2d
from tvm.topi.nn.dense.library import matmul_by


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> te.Tensor:
    """The product of two float32 matrices; parameters as for :func:`tvm.contrib.cblas.matmul`."""
    return matmul_by("tvm.contrib.dnnl.matmul", lhs, rhs, transa, transb, **kwargs)


__all__ = ["dnnl_conv2d", "matmul"]

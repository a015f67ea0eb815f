"""Tensors made from a shape, under the classic module name."""

from __future__ import annotations

from .creation import elemwise_sum, full, full_like

__all__ = ["elemwise_sum", "full", "full_like"]

"""The classic place of the names of :mod:`tvm.script.ir_builder.tir`."""

from __future__ import annotations

from .namespace import tir_names
from .values import unlisted_types

globals().update(tir_names())


__getattr__ = unlisted_types(__name__)


__all__ = [*tir_names()]

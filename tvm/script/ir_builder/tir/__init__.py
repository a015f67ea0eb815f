"""The loop level: ``from tvm.script.ir_builder import tir as T``."""

from __future__ import annotations

from . import naming
from .namespace import tir_names
from .values import unlisted_types

globals().update(tir_names())


__getattr__ = unlisted_types(__name__)


__all__ = ["naming", *tir_names()]

"""Reports on how models run: :mod:`tvm.utils.roofline`."""

from . import roofline
from .roofline import roofline_analysis, roofline_from_existing

__all__ = ["roofline", "roofline_analysis", "roofline_from_existing"]

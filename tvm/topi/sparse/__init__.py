"""Products with matrices by rows (CSR)."""

from ..argument_checks import guarded
from . import utils
from .csrmm import csrmm, csrmm_default
from .csrmv import csrmv, csrmv_default
from .dense import dense, dense_si, dense_sw

__all__ = [
    "csrmm",
    "csrmm_default",
    "csrmv",
    "csrmv_default",
    "dense",
    "dense_si",
    "dense_sw",
    "utils",
]

globals().update(guarded(__name__, globals()))

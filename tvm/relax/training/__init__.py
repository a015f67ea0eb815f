"""Training of relax models."""

from . import utils
from .utils import register_te_gradient

__all__ = ["register_te_gradient", "utils"]

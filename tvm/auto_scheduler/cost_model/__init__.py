"""Models that tell fast programs from slow ones without running them."""

from .cost_model import CostModel, PythonBasedModel, RandomModel
from .xgb_model import XGBModel

__all__ = ["CostModel", "PythonBasedModel", "RandomModel", "XGBModel"]

"""Back ends of relax."""

from . import contrib
from .dispatch_sampling import DispatchSampling
from .pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns

__all__ = [
    "DispatchSampling",
    "contrib",
    "get_pattern",
    "get_patterns_with_prefix",
    "register_patterns",
]

"""Back ends of relax."""

from . import contrib
from .dispatch_sampling import DispatchSampling
from .dispatch_sort_scan import DispatchSortScan
from .pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns

__all__ = [
    "DispatchSampling",
    "DispatchSortScan",
    "contrib",
    "get_pattern",
    "get_patterns_with_prefix",
    "register_patterns",
]

"""Back ends of relax."""

from . import contrib
from .pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns

__all__ = ["contrib", "get_pattern", "get_patterns_with_prefix", "register_patterns"]

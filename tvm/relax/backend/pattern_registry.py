"""The patterns of other compilers, by name: what they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.relax.transform import FusionPattern
from tvm.relax.transform.fuse_ops_by_pattern import as_fusion_pattern

# in the order of registration
_PATTERNS: dict[str, FusionPattern] = {}


def register_patterns(patterns: Sequence[FusionPattern | tuple[Any, ...]]) -> None:
    """Make patterns known under their names, such as ``"cublas.matmul"``.

    Parameters
    ----------
    patterns : list of FusionPattern, or of tuples of its parameters
        Those that are registered later are preferred.
    """
    for pattern in patterns:
        known = as_fusion_pattern(pattern)
        _PATTERNS.pop(known.name, None)
        _PATTERNS[known.name] = known


def get_patterns_with_prefix(prefix: str) -> list[FusionPattern]:
    """The patterns whose names begin with a text, preferred ones first."""
    return [p for name, p in reversed(_PATTERNS.items()) if name.startswith(prefix)]


def get_pattern(name: str) -> FusionPattern | None:
    """The pattern of that name, if there is one."""
    return _PATTERNS.get(name)

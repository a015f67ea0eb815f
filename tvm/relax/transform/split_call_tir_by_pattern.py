"""Loop programs split at what a library computes: for kernels of CUTLASS, which this package does not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.error import TVMError


def SplitCallTIRByPattern(patterns: Sequence[Any], fcodegen: Callable[..., Any]) -> Any:
    """Split loop programs by patterns of loop programs: not supported.

    Raises
    ------
    TVMError
        Always.
    """
    raise TVMError(
        "SplitCallTIRByPattern requires code generators from loop programs, which this package does "
        "not have",
        hint="FuseOpsByPattern and RunCodegen give operators to a library",
    )

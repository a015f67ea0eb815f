"""What is outside the hybrid subset."""

from __future__ import annotations

from tvm.error import TVMError


class HybridError(TVMError, ValueError):
    """A hybrid script has something outside the subset."""

    def __init__(self, name: str, line: int, required: str, found: str, hint: str = "") -> None:
        super().__init__(
            f"hybrid script {name}, line {line}, requires {required}, got {found}", hint=hint
        )

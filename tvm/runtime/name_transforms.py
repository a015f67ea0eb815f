"""Names that are fit for compiled code."""

from __future__ import annotations

import re

from tvm.error import RuntimeValueError


def sanitize_name(original_name: str) -> str:
    """The name with everything but letters, digits and underscores replaced by underscores."""
    if not original_name:
        raise RuntimeValueError("Name is empty: sanitize_name requires at least one letter")
    return re.sub(r"[^0-9a-zA-Z_]", "_", original_name)

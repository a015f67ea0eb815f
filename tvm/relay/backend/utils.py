"""Helpers of the back end under their classic names."""

from __future__ import annotations

from enum import Enum

from tvm.relay.backend.name_transforms import mangle_module_name


class CallType(Enum):
    """How generated code calls kernels."""

    Packed = 0
    CPacked = 1
    Unpacked = 2


__all__ = ["CallType", "mangle_module_name"]

"""Operators that make memory explicit."""

from .memory import (
    alloc_storage,
    alloc_tensor,
    flatten_tuple_type,
    from_tuple_type,
    kill,
    to_tuple_type,
)

"""Block-form functions from operations."""

from __future__ import annotations

from typing import Any


def create_prim_func(ops: Any, index_dtype_override: str | None = None) -> Any:
    raise NotImplementedError


def extern_primfunc(input_tensors: Any, primfunc: Any, **kwargs: Any) -> Any:
    raise NotImplementedError

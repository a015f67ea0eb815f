"""What the accesses of a buffer require of their indices and predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.support import DType

if TYPE_CHECKING:
    from tvm.ir.expr import PrimExpr

    from .buffer import Buffer


def check_access(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> None:
    """Reject what is no access of a buffer: there is an index for each dimension, the last may be a vector.

    Passes that change buffers and accesses one after the other copy nodes unchecked.
    """
    if len(indices) != len(buffer.shape):
        raise RuntimeValueError(
            f"buffer {buffer.name} requires {len(buffer.shape)} indices, got {len(indices)}"
        )
    for index in indices[:-1]:
        if index.dtype.lanes != 1:
            raise RuntimeValueError(
                f"buffer {buffer.name} requires scalars as all but the last index, got {index}"
            )
    for index in indices:
        dtype = index.dtype
        if not (dtype.is_int or dtype.is_uint or dtype.is_bool):
            raise RuntimeValueError(
                f"buffer {buffer.name} requires integers as indices, got {index} of {dtype}"
            )


def check_predicate(predicate: PrimExpr, dtype: DType, access: str, by: str) -> None:
    """Reject a predicate that does not say for each lane whether it is accessed."""
    found = predicate.dtype
    if found.is_scalable != dtype.is_scalable:
        raise RuntimeTypeError(
            f"a predicate requires as many lanes as there are to {access}, got {found} for {dtype}",
            classic=f"Predicate mask dtype and {by} must both be scalable.",
        )
    if not found.is_bool:
        raise RuntimeTypeError(
            f"a predicate requires truth values, got {found}",
            classic=f"Predicate mask elements must be boolean values, but got {found.element}.",
        )
    if found.lanes != dtype.lanes:
        raise RuntimeTypeError(
            f"a predicate requires as many lanes as there are to {access}, got {found} for {dtype}",
            classic=f"Got a predicate mask with {found.lanes} lanes, but trying to {access} with "
            f"{dtype.lanes} lanes. The number of lanes must match.",
        )

"""Python's operators on tensors of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.support.later import names_from_above

# the operators, which are functions of tensors
_later = names_from_above(__name__)


def _op() -> Any:
    return _later("operators")


class TensorOperators:
    """What tensors do in infix form, and as methods."""

    _expr: Any

    def __add__(self, other: Any) -> Any:
        return _op().add(self, _as_tensor(other, self))

    def __radd__(self, other: Any) -> Any:
        return _op().add(self, _as_tensor(other, self))

    def __sub__(self, other: Any) -> Any:
        return _op().subtract(self, _as_tensor(other, self))

    def __rsub__(self, other: Any) -> Any:
        return _op().subtract(_as_tensor(other, self), self)

    def __mul__(self, other: Any) -> Any:
        return _op().multiply(self, _as_tensor(other, self))

    def __rmul__(self, other: Any) -> Any:
        return _op().multiply(self, _as_tensor(other, self))

    def __truediv__(self, other: Any) -> Any:
        return _op().divide(self, _as_tensor(other, self))

    def __rtruediv__(self, other: Any) -> Any:
        return _op().divide(_as_tensor(other, self), self)

    def __neg__(self) -> Any:
        return _op().negative(self)

    def __lt__(self, other: Any) -> Any:
        return _op().less(self, _as_tensor(other, self))

    def __le__(self, other: Any) -> Any:
        return _op().less_equal(self, _as_tensor(other, self))

    def __gt__(self, other: Any) -> Any:
        return _op().greater(self, _as_tensor(other, self))

    def __ge__(self, other: Any) -> Any:
        return _op().greater_equal(self, _as_tensor(other, self))

    def maximum(self, other: Any) -> Any:
        """The larger elements."""
        return _op().maximum(self, _as_tensor(other, self))

    def minimum(self, other: Any) -> Any:
        """The smaller elements."""
        return _op().minimum(self, _as_tensor(other, self))

    def astype(self, dtype: str) -> Any:
        """The elements in another data type."""
        return _op().astype(self, dtype)

    def reshape(self, *shape: Any) -> Any:
        """The elements in another shape."""
        return _op().reshape(self, _sequence(shape))

    def permute_dims(self, *axes: Any) -> Any:
        """The axes in another order."""
        return _op().permute_dims(self, _sequence(axes))

    def repeat(self, repeats: int, axis: int | None = None) -> Any:
        """Each element several times."""
        return _op().repeat(self, repeats, axis)


def _sequence(values: Sequence[Any]) -> Any:
    is_one = len(values) == 1 and isinstance(values[0], (tuple, list))
    return values[0] if is_one else values


def _as_tensor(value: Any, like: Any) -> Any:
    """A number as a constant of the other operand's data type."""
    return type(like).from_scalar(value, like.dtype) if isinstance(value, (int, float)) else value

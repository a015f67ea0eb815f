"""The roots of relax: struct info, and expressions on which Python's operators build calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tvm.ir import extension
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.node import Node, ignored
from tvm.ir.op import Op
from tvm.ir.script_printer import Scriptable
from tvm.ir.span import Span
from tvm.ir.structural import structural_equal, structural_hash

if TYPE_CHECKING:
    from tvm.ir.type import Type

Expr = RelayExpr


class StructInfo(Scriptable, Node, key="relax.StructInfo"):
    """What is known of a value at compile time: its kind, data type and shape. ``==`` compares structure."""

    # where it is bound, as of a parameter, the variables in its shapes are defined
    structural: ClassVar[str] = "definitions"

    span: Span | None = ignored(default=None, kw_only=True)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StructInfo) and structural_equal(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return structural_hash(self)

    def same_as(self, other: object) -> bool:
        """Whether both have the same structure."""
        return self == other

    def is_base_of(self, derived: StructInfo) -> bool:
        """Whether every value that ``derived`` describes is one that this describes."""
        return bool(extension.is_base_of.required(self, derived))

    def static_type(self) -> Type:
        """What it says without shapes and values."""
        raise NotImplementedError(f"{type(self).__name__} has no static type")


class _Fields(RelayExpr):
    """The classic attributes that all expressions of relax have."""

    graph_node: ClassVar[bool] = False  # two equal calls are equal to one that is used twice

    @property  # type: ignore[misc]
    def _checked_type_(self) -> Any:  # derived, so nobody writes it
        info = self.struct_info_
        return None if info is None else info.static_type()


def update_struct_info(expr: RelayExpr, info: StructInfo | None) -> None:
    """Set what is known of an expression."""
    object.__setattr__(expr, "struct_info_", info)


def _call(name: str, *args: Any) -> Any:
    return Op.get(name)(*args)


def _operand(other: object) -> RelayExpr:
    if isinstance(other, RelayExpr):
        return other
    if isinstance(other, (bool, int, float, np.generic)):
        raise TypeError(f"Please convert {other} with `const` first")
    raise TypeError(f"a relax expression is required here, got {type(other).__name__}")


class ExprWithOp(Scriptable, _Fields):
    """An expression on which Python's operators build calls of relax operators."""

    def astype(self, dtype: Any) -> RelayExpr:
        """Convert the elements to ``dtype``."""
        found: RelayExpr = _call("relax.astype", self, dtype)
        return found

    def __neg__(self) -> Any:
        return _call("relax.negative", self)

    def __lt__(self, other: object) -> Any:
        return _call("relax.less", self, _operand(other))

    def __gt__(self, other: object) -> Any:
        return _call("relax.greater", self, _operand(other))

    def __le__(self, other: object) -> Any:
        return _call("relax.less_equal", self, _operand(other))

    def __ge__(self, other: object) -> Any:
        return _call("relax.greater_equal", self, _operand(other))

    # equality is identity

    def __add__(self, other: object) -> Any:
        return _call("relax.add", self, _operand(other))

    def __radd__(self, other: object) -> Any:
        return _call("relax.add", _operand(other), self)

    def __sub__(self, other: object) -> Any:
        return _call("relax.subtract", self, _operand(other))

    def __rsub__(self, other: object) -> Any:
        return _call("relax.subtract", _operand(other), self)

    def __mul__(self, other: object) -> Any:
        return _call("relax.multiply", self, _operand(other))

    def __rmul__(self, other: object) -> Any:
        return _call("relax.multiply", _operand(other), self)

    def __truediv__(self, other: object) -> Any:
        return _call("relax.divide", self, _operand(other))

    def __rtruediv__(self, other: object) -> Any:
        return _call("relax.divide", _operand(other), self)

    def __floordiv__(self, other: object) -> Any:
        return _call("relax.floor_divide", self, _operand(other))

    def __rfloordiv__(self, other: object) -> Any:
        return _call("relax.floor_divide", _operand(other), self)

    def __mod__(self, other: object) -> Any:
        return _call("relax.mod", self, _operand(other))

    def __rmod__(self, other: object) -> Any:
        return _call("relax.mod", _operand(other), self)

    def __pow__(self, other: object) -> Any:
        return _call("relax.power", self, _operand(other))

    def __rpow__(self, other: object) -> Any:
        return _call("relax.power", _operand(other), self)

    def __call__(self, *args: Any, attrs: Any = None) -> Any:
        """Call this expression as a function."""
        return extension.relax_call.required(self, args, attrs)

    def __getitem__(self, index: Any) -> Any:
        """A field of a tuple.

        Raises
        ------
        IndexError
            If the tuple is known to have no such field.
        """
        return extension.relax_item.required(self, index)

    def __iter__(self) -> Iterator[Any]:
        """The fields of a tuple that is known to be one."""
        fields = getattr(self.struct_info_, "fields", None)
        if fields is None:
            raise TypeError(f"only a tuple can be unpacked, got {self.struct_info_}")
        return iter([self[i] for i in range(len(fields))])

    @property
    def dtype(self) -> Any:
        """The data type of a tensor, read at run time."""
        return extension.relax_inspect.required(self, "dtype")

    @property
    def ndim(self) -> Any:
        """The number of a tensor's dimensions, read at run time."""
        return extension.relax_inspect.required(self, "ndim")

    @property
    def shape(self) -> Any:
        """The dimensions of a tensor, each read at run time."""
        return extension.relax_inspect.required(self, "shape")

    @property
    def strides(self) -> Any:
        """The strides of a tensor, each read at run time."""
        return extension.relax_inspect.required(self, "strides")

    @property
    def byte_offset(self) -> Any:
        """The offset of a tensor in its memory, in bytes, read at run time."""
        return extension.relax_inspect.required(self, "byte_offset")

    @property
    def elem_offset(self) -> Any:
        """The offset of a tensor in its memory, in elements, read at run time."""
        return extension.relax_inspect.required(self, "elem_offset")


__all__ = ["Expr", "ExprWithOp", "GlobalVar", "StructInfo", "update_struct_info"]

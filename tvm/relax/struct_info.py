"""Struct info: what the compiler knows of values, with symbolic shapes; and shapes themselves.

    TensorStructInfo((n, 4), "float32")     FuncStructInfo([TensorStructInfo((n,))], ret)

Dimensions are ``int64`` expressions of the loop level; the variables in them are the function's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.global_info import VDevice
from tvm.ir.node import binder, child, ignored, leaf, reference
from tvm.ir.span import Span
from tvm.ir.type import FuncType, PrimType, TupleType, Type
from tvm.support.dtype import DType, dtype
from tvm.tir.expr import FloatImm, IntImm

from .base import ExprWithOp, StructInfo
from .ty import DynTensorType, ObjectType, PackedFuncType, ShapeType


def as_dimensions(values: Any) -> tuple[PrimExpr, ...]:
    """Dimensions as ``int64`` expressions.

    Raises
    ------
    TVMError
        If one has another data type, or is no number.
    """
    if isinstance(values, (str, bytes, PrimExpr)) or not isinstance(values, (Sequence, np.ndarray)):
        raise TVMError(f"a shape requires a sequence of dimensions, got {type(values).__name__}")
    return tuple([_as_dimension(value) for value in values])


def _as_dimension(value: Any) -> PrimExpr:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return IntImm("int64", int(value))
    if hasattr(value, "asobject"):
        value = value.asobject()
    if not isinstance(value, PrimExpr):
        raise TVMError(f"a shape requires integers or expressions, got {value!r}")
    if isinstance(value, IntImm):
        return value if value.dtype == "int64" else IntImm("int64", value.value)
    if value.dtype != "int64":
        raise TVMError(
            "the value in ShapeStructInfo can only have dtype of int64, "
            f"got {value} of {value.dtype}"
        )
    return value


class ObjectStructInfo(StructInfo, key="relax.ObjectStructInfo"):
    """Any object."""

    def static_type(self) -> Type:
        return ObjectType()


class PrimStructInfo(StructInfo, key="relax.PrimStructInfo"):
    """A number of a data type, of which the value may be known.

    Parameters
    ----------
    dtype : str, optional
        The data type; by default that of the value.
    value : int, float or PrimExpr, optional
        The value.
    """

    value: PrimExpr | None = None
    dtype: DType = leaf(default=dtype("int64"))

    def __init__(self, dtype: Any = None, value: Any = None, span: Span | None = None) -> None:
        if value is not None:
            value = as_prim_value(value)
            if dtype is not None and as_dtype(dtype) != value.dtype:
                raise ValueError(
                    f"PrimStructInfo requires one of dtype and value, got {dtype} and {value}"
                )
            dtype = value.dtype
        if dtype is None:
            raise ValueError("PrimStructInfo requires a dtype or a value")
        self._init(dtype=as_dtype(dtype), value=value, span=span)

    def static_type(self) -> Type:
        return PrimType(self.dtype)


def as_dtype(value: Any) -> DType:
    """The data type; TVMError for what is none."""
    try:
        return dtype(value)
    except (TypeError, ValueError) as error:
        raise TVMError(str(error)) from None


def as_prim_value(value: Any) -> PrimExpr:
    """A number as an expression of 64 bits; expressions themselves."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, (bool, np.bool_)):
        return IntImm("bool", int(value))
    if isinstance(value, (int, np.integer)):
        return IntImm("int64", int(value))
    if isinstance(value, (float, np.floating)):
        return FloatImm("float64", float(value))
    if hasattr(value, "asobject"):
        return as_prim_value(value.asobject())
    raise TVMError(f"a number or an expression is required, got {type(value).__name__}")


class ShapeStructInfo(StructInfo, key="relax.ShapeStructInfo"):
    """A shape, of which the dimensions or their number may be known.

    Parameters
    ----------
    values : sequence of int or PrimExpr, optional
        The dimensions.
    ndim : int
        Their number, if they are not known; -1: it is not known.
    """

    values: tuple[PrimExpr, ...] | None = None
    ndim: int = -1

    def __init__(self, values: Any = None, ndim: int = -1, span: Span | None = None) -> None:
        if values is not None:
            if ndim != -1:
                raise ValueError("ShapeStructInfo requires one of values and ndim, got both")
            values = as_dimensions(values)
            ndim = len(values)
        self._init(values, int(ndim), span)

    @property
    def is_unknown_ndim(self) -> bool:
        """Whether not even the number of dimensions is known."""
        return self.ndim < 0

    def static_type(self) -> Type:
        return ShapeType(self.ndim)


class ShapeExpr(ExprWithOp, key="relax.expr.ShapeExpr"):
    """A shape of dimensions that are integers or expressions.

    Parameters
    ----------
    values : sequence of int or PrimExpr
        The dimensions.
    """

    values: tuple[PrimExpr, ...] = child()
    struct_info_: StructInfo | None = ignored(default=None)

    def __init__(self, values: Any, span: Span | None = None) -> None:
        dimensions = as_dimensions(values)
        self._init(dimensions, ShapeStructInfo._make(dimensions, len(dimensions)), span)

    def __getitem__(self, index: Any) -> PrimExpr:
        if not -len(self.values) <= index < len(self.values):
            raise IndexError(
                f"ShapeExpr index out of range: {index} of {len(self.values)} dimensions"
            )
        found: PrimExpr = self.values[index]
        return found

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[PrimExpr]:
        return iter(self.values)


class TensorStructInfo(StructInfo, key="relax.TensorStructInfo"):
    """A tensor, of which the shape or its rank and the data type may be known.

    Parameters
    ----------
    shape : sequence of int or PrimExpr, or Expr, optional
        The dimensions, or an expression of relax that is the shape.
    dtype : str, optional
        The data type of the elements; None or ``""`` if it is not known.
    vdevice : VDevice, optional
        Where it lives.
    ndim : int
        The number of dimensions, if they are not known; -1: it is not known.
    """

    shape: RelayExpr | None = None
    dtype: DType = leaf(default=dtype("float32"))
    vdevice: VDevice | None = reference(default=None)
    ndim: int = -1

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = "float32",
        vdevice: Any = None,
        ndim: int = -1,
        span: Span | None = None,
    ) -> None:
        if shape is not None:
            if ndim != -1:
                raise ValueError("TensorStructInfo requires one of shape and ndim, got both")
            shape = shape if isinstance(shape, RelayExpr) else ShapeExpr(shape)
            ndim = _rank_of(shape)
        self._init(
            shape=shape, dtype=as_dtype("" if dtype is None else dtype), vdevice=vdevice,
            ndim=int(ndim), span=span,
        )  # fmt: skip

    @property
    def is_unknown_ndim(self) -> bool:
        """Whether not even the number of dimensions is known."""
        return self.ndim < 0

    @property
    def dimensions(self) -> tuple[PrimExpr, ...] | None:
        """The dimensions, if they are known."""
        shape = self.shape
        if isinstance(shape, ShapeExpr):
            return shape.values
        info = None if shape is None else shape.struct_info_
        return info.values if isinstance(info, ShapeStructInfo) else None

    def static_type(self) -> Type:
        return DynTensorType(self.ndim, self.dtype)


def _rank_of(shape: RelayExpr) -> int:
    info = shape.struct_info_
    if info is None:
        raise ValueError(f"TensorStructInfo requires a shape of known struct info, got {shape}")
    if not isinstance(info, ShapeStructInfo):
        raise ValueError(f"TensorStructInfo requires a shape, got {shape} which is {info}")
    return info.ndim


def _infos(fields: Any) -> tuple[StructInfo, ...]:
    if isinstance(fields, StructInfo) or not isinstance(fields, Sequence):
        raise TVMError(
            f"TupleStructInfo requires a sequence of struct info, got {type(fields).__name__}"
        )
    for field in fields:
        if not isinstance(field, StructInfo):
            raise TVMError(f"struct info is required, got {field!r}")
    return tuple(fields)


class TupleStructInfo(StructInfo, key="relax.TupleStructInfo"):
    """A tuple."""

    fields: tuple[StructInfo, ...] = child(convert=_infos)

    if TYPE_CHECKING:

        def __init__(self, fields: Sequence[StructInfo], span: Span | None = None) -> None: ...

    def static_type(self) -> Type:
        return TupleType([field.static_type() for field in self.fields])


class FuncStructInfo(StructInfo, key="relax.FuncStructInfo"):
    """A function; an opaque one has unknown parameters.

    Parameters
    ----------
    params : sequence of StructInfo
        Of the parameters. Variables in their shapes are bound by a call's arguments.
    ret : StructInfo
        Of the result.
    purity : bool
        Whether it has no side effects.
    """

    params: tuple[StructInfo, ...] | None = binder("ret")
    ret: StructInfo
    derive_func: Any = leaf(default=None)  # an EnvFunc, for opaque functions
    purity: bool = True

    def __init__(
        self,
        params: Sequence[StructInfo],
        ret: StructInfo,
        purity: bool = True,
        span: Span | None = None,
    ) -> None:
        self._init(_infos(params), ret, None, bool(purity), span)

    @staticmethod
    def opaque_func(
        *,
        ret: StructInfo | None = None,
        derive_func: Any = None,
        purity: bool = False,
        span: Span | None = None,
    ) -> FuncStructInfo:
        """A function of unknown parameters.

        Parameters
        ----------
        ret : StructInfo, optional
            Of the result, by default any object.
        derive_func : EnvFunc or str, optional
            The global function of (call, block builder) that says what a call's result is.
        purity : bool
            Whether it has no side effects.
        """
        made: FuncStructInfo = FuncStructInfo._make(
            None, ret or ObjectStructInfo(), derive_func, bool(purity), span
        )
        return made

    @property
    def is_opaque(self) -> bool:
        """Whether the parameters are unknown."""
        return self.params is None

    def static_type(self) -> Type:
        if self.params is None:
            return PackedFuncType()
        return FuncType([p.static_type() for p in self.params], self.ret.static_type())


__all__ = [
    "FuncStructInfo", "ObjectStructInfo", "PrimStructInfo", "ShapeExpr", "ShapeStructInfo",
    "StructInfo", "TensorStructInfo", "TupleStructInfo", "as_dimensions", "as_dtype",
    "as_prim_value",
]  # fmt: skip

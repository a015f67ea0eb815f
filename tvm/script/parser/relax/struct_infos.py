"""Struct info as programs write it: ``R.Tensor(("n", 4), "float32")``.

Dimensions may be texts, which name symbolic variables of the function; what has such is a template that
the parser fills in. All else is struct info at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir.env_func import EnvFunc
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.global_info import VDevice
from tvm.relax.base import StructInfo
from tvm.relax.expr import Expr
from tvm.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.tir.expr import Var

from ...ir_builder.ir import lookup_vdevice


class StructInfoProxy:
    """Struct info that is not complete: ``as_struct_info`` fills in symbolic variables by name."""

    def as_struct_info(self, dict_globals: Mapping[str, Any] | None = None) -> StructInfo:
        """The struct info over variables by their names."""
        raise NotImplementedError

    def get_symbolic_vars(self) -> set[str]:
        """The names of symbolic variables that it defines."""
        return set()


def _filled(value: Any, names: Mapping[str, Any] | None) -> Any:
    """A dimension; a text is an expression over names."""
    if not isinstance(value, str):
        return value
    if names is None:
        raise ValueError(f"the symbolic dimension {value!r} requires a function around it")
    return eval(value, {}, dict(names))


def _names(values: Sequence[Any] | None) -> set[str]:
    return {v for v in values or () if isinstance(v, str) and v.isidentifier()}


class TensorProxy(StructInfoProxy):
    """A tensor with dimensions by name."""

    def __init__(self, shape: Any, dtype: Any, vdevice: Any, ndim: int) -> None:
        self.shape, self.dtype, self.vdevice, self.ndim = shape, dtype, vdevice, ndim

    def get_symbolic_vars(self) -> set[str]:
        return _names(self.shape) if isinstance(self.shape, (list, tuple)) else set()

    def as_struct_info(self, dict_globals: Mapping[str, Any] | None = None) -> StructInfo:
        shape: Any = self.shape
        if isinstance(shape, (list, tuple)):
            shape = [_filled(value, dict_globals) for value in shape]
        return TensorStructInfo(shape, self.dtype, _device(self.vdevice), self.ndim)


def _device(value: Any) -> Any:
    """A device; a text names one of the module's."""
    if not isinstance(value, str):
        return value
    parts = value.split(":")
    index = int(parts[1]) if len(parts) > 1 and parts[1] else 0
    return lookup_vdevice(parts[0], index)


def Tensor(shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: int = -1) -> Any:
    """A tensor.

    Parameters
    ----------
    shape : sequence of int, PrimExpr or str, or Expr, optional
        The dimensions.
    dtype : str, optional
        The data type; a program may give it alone, ``R.Tensor("float32")``.
    vdevice : VDevice or str, optional
        Where it lives.
    ndim : int
        The number of dimensions, if they are not known.
    """
    if isinstance(shape, str) and dtype is None:
        shape, dtype = None, shape
    if shape is not None and not isinstance(shape, (tuple, list, RelayExpr)):
        raise ValueError(f"R.Tensor requires shape to be a list, a tuple or an Expr, got {shape!r}")
    if isinstance(shape, (tuple, list)) and ndim not in (-1, len(shape)):
        raise ValueError(f"R.Tensor got {len(shape)} dimensions and ndim={ndim}")
    ndim = -1 if shape is not None else ndim
    proxy = TensorProxy(shape, dtype, vdevice, ndim)
    if isinstance(vdevice, str) or _has_text(shape):
        return proxy
    return proxy.as_struct_info()


def _has_text(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and any([isinstance(v, str) for v in values])


class ShapeProxy(StructInfoProxy):
    """A shape with dimensions by name."""

    def __init__(self, values: Any, ndim: int) -> None:
        self.values, self.ndim = values, ndim

    def get_symbolic_vars(self) -> set[str]:
        return _names(self.values)

    def as_struct_info(self, dict_globals: Mapping[str, Any] | None = None) -> StructInfo:
        values = self.values
        if values is not None:
            values = [_filled(value, dict_globals) for value in values]
        return ShapeStructInfo(values, self.ndim)


def Shape(values: Any = None, ndim: int = -1) -> Any:
    """A shape.

    Parameters
    ----------
    values : sequence of int, PrimExpr or str, optional
        The dimensions.
    ndim : int
        Their number, if they are not known.
    """
    proxy = ShapeProxy(values, ndim)
    return proxy if _has_text(values) else proxy.as_struct_info()


def Object() -> ObjectStructInfo:
    """Any object."""
    return ObjectStructInfo()


class PrimProxy(StructInfoProxy):
    """A number whose value has a name."""

    def __init__(self, dtype: Any, value: Any) -> None:
        self.dtype, self.value = dtype, value

    def get_symbolic_vars(self) -> set[str]:
        return _names([self.value])

    def as_struct_info(self, dict_globals: Mapping[str, Any] | None = None) -> StructInfo:
        return PrimStructInfo(self.dtype, _filled(self.value, dict_globals))


def Prim(dtype: Any = None, value: Any = None) -> Any:
    """A number.

    Parameters
    ----------
    dtype : str, optional
        Its data type.
    value : int, float, PrimExpr or str, optional
        Its value.
    """
    proxy = PrimProxy(dtype, value)
    return proxy if isinstance(value, str) else proxy.as_struct_info()


class TupleProxy(StructInfoProxy):
    """A tuple with parts that are not complete."""

    def __init__(self, fields: Sequence[Any]) -> None:
        self.fields = list(fields)

    def get_symbolic_vars(self) -> set[str]:
        return {
            n for f in self.fields if isinstance(f, StructInfoProxy) for n in f.get_symbolic_vars()
        }

    def as_struct_info(self, dict_globals: Mapping[str, Any] | None = None) -> StructInfo:
        return TupleStructInfo([complete(f, dict_globals) for f in self.fields])


def Tuple(*fields: Any) -> Any:
    """A tuple.

    Parameters
    ----------
    fields : StructInfo
    """
    if len(fields) == 1 and isinstance(fields[0], (tuple, list)):
        fields = tuple(fields[0])
    parts = [as_template(field) for field in fields]
    proxy = TupleProxy(parts)
    return proxy if _is_open(parts) else proxy.as_struct_info()


def _is_open(parts: Sequence[Any]) -> bool:
    return any([isinstance(part, StructInfoProxy) for part in parts])


class CallableProxy(StructInfoProxy):
    """A function with parts that are not complete."""

    def __init__(self, params: Any, ret: Any, purity: bool, derive_func: Any) -> None:
        self.params, self.ret, self.purity, self.derive_func = params, ret, purity, derive_func

    def get_symbolic_vars(self) -> set[str]:
        return set()  # they are the function's own

    def _own_names(self) -> set[str]:
        parts = [p for p in self.params or () if isinstance(p, StructInfoProxy)]
        return {n for p in parts for n in p.get_symbolic_vars()}

    def as_struct_info(self, dict_globals: Mapping[str, Any] | None = None) -> StructInfo:
        names = dict(dict_globals or {})
        for name in sorted(self._own_names()):
            names.setdefault(name, Var(name, "int64"))
        ret = complete(self.ret, names)
        if self.params is None:
            return FuncStructInfo.opaque_func(
                ret=ret, derive_func=self.derive_func, purity=self.purity
            )
        return FuncStructInfo([complete(p, names) for p in self.params], ret, self.purity)


def Callable(
    params: Any = None, ret: Any = None, purity: bool | None = None, derive_func: Any = None
) -> Any:
    """A function.

    Parameters
    ----------
    params : StructInfo or list of StructInfo, optional
        Of the parameters; an opaque function without.
    ret : StructInfo, optional
        Of the result.
    purity : bool, optional
        Whether it has no side effects; by default that of an opaque function is not known.
    derive_func : str, optional
        The global function that says what calls of an opaque function return.
    """
    if params is not None and not isinstance(params, (list, tuple)):
        params = [params]
    if params is not None and ret is None:
        raise ValueError("the return struct info of R.Callable requires to be given with params")
    parts = None if params is None else [as_template(p) for p in params]
    result = ObjectStructInfo() if ret is None else as_template(ret)
    pure = (params is not None) if purity is None else bool(purity)
    if isinstance(derive_func, str):
        derive_func = EnvFunc.get(derive_func)
    proxy = CallableProxy(parts, result, pure, derive_func)
    if _is_open([*(parts or ()), result]):
        return proxy
    return proxy.as_struct_info()


def as_template(value: Any) -> Any:
    """Struct info, a template of it, or what makes one without arguments, such as ``R.Object``."""
    if isinstance(value, (StructInfo, StructInfoProxy)):
        return value
    if value is None:
        return TupleStructInfo([])
    if callable(value):
        return as_template(value())
    raise TypeError(f"Expected StructInfo but got {type(value)}: {value}")


def complete(value: Any, names: Mapping[str, Any] | None) -> StructInfo:
    """Struct info over symbolic variables by name."""
    template = as_template(value)
    if isinstance(template, StructInfoProxy):
        return template.as_struct_info(names)
    found: StructInfo = template
    return found


class MatchCastPair:
    """``R.match_cast(value, struct_info)``, which an assignment makes a binding."""

    def __init__(self, value: Expr, struct_info: StructInfo) -> None:
        self.value, self.struct_info = value, struct_info


def match_cast(value: Any, struct_info: Any) -> MatchCastPair:
    """A value that is checked at run time, which defines symbolic variables.

    Parameters
    ----------
    value : Expr
    struct_info : StructInfo
    """
    if value is None:
        raise ValueError("value of match_cast cannot be None")
    if struct_info is None:
        raise ValueError("struct_info of match_cast cannot be None")
    return MatchCastPair(value, struct_info)


__all__ = [
    "Callable", "MatchCastPair", "Object", "Prim", "PrimExpr", "Shape", "ShapeExpr",
    "StructInfoProxy", "Tensor", "Tuple", "VDevice", "as_template", "complete", "match_cast",
]  # fmt: skip

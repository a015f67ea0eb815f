"""What inferences of operators have in common: their tensors, broadcasting, axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from tvm.arith import Analyzer, ConstIntBound
from tvm.error import TypeCheckError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.structural import structural_equal
from tvm.relax.expr import Call, Tuple, TupleGetItem, Var
from tvm.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.relax.struct_info_relations import prove_equal, tir_vars_in
from tvm.support.dtype import DType, dtype
from tvm.tir.expr import NE, Add, IntImm, Mul, Sub
from tvm.tir.expr import Var as Variable
from tvm.tir.op import floordiv

VOID = dtype("void")


def fail(call: Call, text: str) -> TypeCheckError:
    """The error of a call whose arguments do not fit."""
    return TypeCheckError(f"{getattr(call.op, 'name', call.op)} {text}")


def check_count(call: Call, least: int, most: int | None = None) -> None:
    """Reject another number of arguments."""
    if not least <= len(call.args) <= (least if most is None else most):
        raise fail(call, f"requires {least} arguments, got {len(call.args)}")


def tensor(call: Call, index: int) -> TensorStructInfo:
    """The struct info of an argument that is a tensor."""
    info = call.args[index].struct_info
    if not isinstance(info, TensorStructInfo):
        raise fail(call, f"requires argument {index} to be a Tensor, got {info}")
    return info


def tensors(call: Call, least: int, most: int | None = None) -> list[TensorStructInfo]:
    """The struct info of all arguments, which are tensors and so many."""
    check_count(call, least, most)
    return [tensor(call, i) for i in range(len(call.args))]


def tuple_of_tensors(call: Call, index: int) -> list[TensorStructInfo] | None:
    """The struct info of the fields of an argument that is a tuple of tensors."""
    info = call.args[index].struct_info
    if not isinstance(info, TupleStructInfo):
        raise fail(call, f"requires argument {index} to be a Tuple of Tensors, got {info}")
    for field in info.fields:
        if not isinstance(field, TensorStructInfo):
            raise fail(call, f"requires argument {index} to be a Tuple of Tensors, got {info}")
    return list(info.fields)  # type: ignore[arg-type]


def shape_argument(call: Call, index: int) -> ShapeStructInfo:
    """The struct info of an argument that is a shape."""
    info = call.args[index].struct_info
    if not isinstance(info, ShapeStructInfo):
        raise fail(call, f"requires argument {index} to be a Shape, got {info}")
    return info


def dims_of(info: TensorStructInfo) -> tuple[PrimExpr, ...] | None:
    """The dimensions of a tensor whose shape is written out."""
    return info.shape.values if isinstance(info.shape, ShapeExpr) else None


def known_dims(info: TensorStructInfo) -> tuple[PrimExpr, ...] | None:
    """The dimensions of a tensor as far as its shape's struct info says."""
    return info.dimensions


def with_dtype(info: TensorStructInfo, kind: Any) -> TensorStructInfo:
    """The same tensor of another data type."""
    if info.shape is not None:
        return TensorStructInfo(info.shape, kind, info.vdevice)
    return TensorStructInfo(None, kind, info.vdevice, info.ndim)


def made(shape: Any, kind: Any, device: Any = None, ndim: int = -1) -> TensorStructInfo:
    """A tensor of a shape, or of so many dimensions if that is None."""
    if shape is None:
        return TensorStructInfo(None, kind, device, ndim)
    return TensorStructInfo(shape, kind, device)


def require_float(call: Call, info: TensorStructInfo) -> None:
    """Reject a tensor that is known not to be of floats."""
    if not info.dtype.is_void and not info.dtype.is_float:
        raise fail(call, f"requires a float dtype, got {info.dtype}")


def an_object(call: Call, bb: Any) -> StructInfo:
    """What is no tensor, such as storage."""
    return ObjectStructInfo()


def no_result(call: Call, bb: Any) -> StructInfo:
    """An empty tuple: the call is made for its effect."""
    return TupleStructInfo([])


def same(call: Call, bb: Any) -> StructInfo:
    """A tensor of the shape and dtype of the only tensor."""
    return tensors(call, 1)[0]


def same_float(call: Call, bb: Any) -> StructInfo:
    """A tensor of the shape and dtype of the only tensor, which is of floats."""
    info = tensors(call, 1)[0]
    require_float(call, info)
    return info


def same_bool(call: Call, bb: Any) -> StructInfo:
    """A tensor of the shape of the only tensor, and of dtype bool."""
    return with_dtype(tensors(call, 1)[0], "bool")


def same_as_first(call: Call, bb: Any) -> StructInfo:
    """What the first argument is: a value of its shape and dtype."""
    found: StructInfo = call.args[0].struct_info
    return found


# ---- broadcasting


def common_dtype(call: Call, infos: Sequence[StructInfo]) -> DType:
    """The data type that tensors and numbers share; unknown if one is."""
    found: DType | None = None
    kinds = [i.dtype for i in infos if isinstance(i, (TensorStructInfo, PrimStructInfo))]
    if any([kind.is_void for kind in kinds]):
        return VOID
    for kind in kinds:
        if found is not None and kind is not found:
            raise fail(call, f"requires arguments of one dtype, got {found} and {kind}")
        found = kind
    return VOID if found is None else found


def common_vdevice(call: Call, infos: Sequence[Any]) -> Any:
    """The device of tensors that have one."""
    found = None
    for info in infos:
        device = getattr(info, "vdevice", None)
        if device is None:
            continue
        if found is not None and not structural_equal(device, found):
            raise fail(call, f"requires arguments on one vdevice, got {found} and {device}")
        found = device
    return found


def prove_unequal(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two dimensions are known to differ."""
    if type(a) is IntImm and type(b) is IntImm:
        return bool(a.value != b.value)
    if a is b or (type(a) is Variable and type(b) is Variable):
        return False
    return Analyzer().can_prove(NE(a, b))


def broadcast_dims(
    call: Call, a: Sequence[PrimExpr], b: Sequence[PrimExpr]
) -> list[PrimExpr] | None:
    """The dimensions of both, numpy's way; None if they cannot be told.

    Raises
    ------
    TypeCheckError
        If they are known to differ.
    """
    result: list[PrimExpr] = []
    for i in range(1, max(len(a), len(b)) + 1):
        if i > len(a) or i > len(b):
            result.append(b[-i] if i > len(a) else a[-i])
            continue
        x, y = a[-i], b[-i]
        if is_one(x):
            result.append(y)
        elif is_one(y) or prove_equal(x, y):
            result.append(x)
        elif type(x) is IntImm and type(y) is IntImm:
            raise fail(
                call,
                f"requires shapes that broadcast, got ({_text(a)}) and ({_text(b)})",
            )
        else:
            return None
    return result[::-1]


def _text(dims: Sequence[PrimExpr]) -> str:
    return ", ".join([str(d) for d in dims])


def items_of(value: RelayExpr) -> Sequence[RelayExpr]:
    """The fields of what is known to be a tuple."""
    if isinstance(value, Tuple):
        return value.fields
    return [TupleGetItem(value, i) for i in range(len(value.struct_info.fields))]


def is_number(value: Any) -> TypeGuard[IntImm]:
    """Whether a dimension is known."""
    return type(value) is IntImm


def is_one(dim: PrimExpr) -> bool:
    """Whether a dimension is the number one."""
    return type(dim) is IntImm and dim.value == 1


def broadcast_shape(call: Call, infos: Sequence[Any], kind: Any, device: Any) -> StructInfo:
    """Tensors and numbers, broadcast, as a tensor of a data type."""
    shaped = [i for i in infos if isinstance(i, TensorStructInfo)]
    if not shaped:
        return PrimStructInfo(kind)
    if any([i.ndim < 0 for i in shaped]):
        return made(None, kind, device)
    ndim = max([i.ndim for i in shaped])
    first = shaped[0].shape
    if isinstance(first, Var) and all([i.shape is first for i in shaped]):
        return made(first, kind, device)
    dims = [dims_of(i) for i in shaped]
    if any([d is None for d in dims]):
        return made(None, kind, device, ndim)
    result: Any = dims[0]
    for other in dims[1:]:
        result = broadcast_dims(call, result, other or ())
        if result is None:
            return made(None, kind, device, ndim)
    return made(tuple(result), kind, device)


# ---- axes


def axis_of(call: Call, axis: int, ndim: int) -> int:
    """An axis counted from the front.

    Raises
    ------
    TypeCheckError
        If there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise fail(call, f"requires an axis in [{-ndim}, {ndim}), got {axis}")
    return axis % ndim if ndim else 0


def axes_of(call: Call, axes: Sequence[int], ndim: int) -> list[int]:
    """Axes counted from the front, each once."""
    found = [axis_of(call, axis, ndim) for axis in axes]
    if len({*found}) != len(found):
        raise fail(call, f"requires axes that differ, got {list(axes)}")
    return found


def product(dims: Sequence[PrimExpr]) -> PrimExpr:
    """The number of elements."""
    result: PrimExpr = IntImm("int64", 1)
    for dim in dims:
        result = result * dim
    return result


def simplified(value: PrimExpr) -> PrimExpr:
    """An expression in its simplest form."""
    return value if type(value) is IntImm else Analyzer().simplify(value)


def simplified_size(value: PrimExpr) -> PrimExpr:
    """An expression over dimensions, none of which is negative, in its simplest form."""
    analyzer = Analyzer()
    for var in tir_vars_in(value):
        analyzer.update(var, ConstIntBound(0, ConstIntBound.POS_INF))
    return analyzer.simplify(value)


def as_sum(value: PrimExpr) -> PrimExpr:
    """A size as shapes are written: what is added, in its order, then what is taken away.

    (a + b) * 2 - 4 - c + 5    ->    a * 2 + b * 2 + 1 - c
    """
    terms: list[tuple[PrimExpr, int]] = []
    total = _collect_terms(simplified(value), 1, terms)
    return _written(terms, total, value.dtype)


def window_positions(length: PrimExpr, stride: IntImm | int) -> PrimExpr:
    """``length // stride + 1`` as shapes are written: what the stride divides stands outside.

    n + 3 - k * 2, in steps of 2    ->    (n + 3) // 2 + 1 - k
    """
    terms: list[tuple[PrimExpr, int]] = []
    step, dtype = int(stride), length.dtype
    total = _collect_terms(simplified(length), 1, terms)
    rest = [(term, factor) for term, factor in terms if factor % step]
    whole = [(term, factor // step) for term, factor in terms if factor % step == 0]
    if not rest or total % step == 0:
        whole_total, total = total // step, 0
    else:
        whole_total = 0
    if rest:
        quotient = floordiv(_written(rest, total, dtype), IntImm(dtype, step))
        whole = [(quotient, 1), *whole]
    return _written(whole, whole_total + 1, dtype)


def _written(terms: Sequence[tuple[PrimExpr, int]], total: int, dtype: Any) -> PrimExpr:
    """The sum of terms with their factors, and of a constant."""
    parts = [(term, factor) for term, factor in terms if factor > 0]
    parts += [(IntImm(dtype, total), 1)] * (total > 0)
    parts += [(term, factor) for term, factor in terms if factor < 0]
    parts += [(IntImm(dtype, -total), -1)] * (total < 0)
    if not parts:
        return IntImm(dtype, 0)
    result: PrimExpr | None = None
    for term, factor in parts:
        size = abs(factor)
        part = term if size == 1 else term * size
        if result is None:
            result = part if factor > 0 else -part
        else:
            result = result + part if factor > 0 else result - part
    assert result is not None
    return result


def _collect_terms(value: PrimExpr, factor: int, terms: list[tuple[PrimExpr, int]]) -> int:
    """Add the terms of a sum with their factors; the constant is returned."""
    if isinstance(value, IntImm):
        return factor * value.value
    if isinstance(value, (Add, Sub)):
        sign = 1 if isinstance(value, Add) else -1
        first = _collect_terms(value.a, factor, terms)
        return first + _collect_terms(value.b, sign * factor, terms)
    if isinstance(value, Mul) and isinstance(value.b, IntImm):
        return _collect_terms(value.a, factor * value.b.value, terms)
    terms.append((value, factor))
    return 0


def fields_of(arg: RelayExpr) -> list[RelayExpr]:
    """The fields of an expression that is a tuple written out."""
    return list(arg.fields) if isinstance(arg, Tuple) else [arg]

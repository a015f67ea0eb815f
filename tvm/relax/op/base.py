"""Calls of loop programs and packed functions, and what programs say of shapes, devices and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm.ir import extension
from tvm.ir.env_func import EnvFunc
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.relax.base import StructInfo
from tvm.relax.expr import Call, ExternFunc, StringImm, Tuple, TupleGetItem, Var, as_expr
from tvm.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.runtime.container import Map
from tvm.script.ir_builder.ir import lookup_vdevice

from .infer import check_count, fail, prove_unequal, tensors
from .operator import Attr, Expr, define, make_record, operator


def _of_sinfo_arg(call: Call, bb: Any) -> StructInfo:
    """The only struct info that a call states, or a tuple of several."""
    infos = call.sinfo_args
    if not infos:
        raise fail(call, "requires sinfo_args, which say what it returns")
    return infos[0] if len(infos) == 1 else TupleStructInfo(infos)


@tvm.register_func("tvm.relax.struct_info.infer_by_sinfo_args", override=True)
def infer_by_sinfo_args(call: Call, bb: Any) -> StructInfo:
    """What a call of a packed function says that it returns; any object if it does not."""
    if not call.sinfo_args:
        return ObjectStructInfo()
    return _of_sinfo_arg(call, bb)


extension.infer_by_sinfo_args.provide(
    lambda: EnvFunc.get("tvm.relax.struct_info.infer_by_sinfo_args")
)


# ---- calls of loop programs


def _check_dps_arguments(call: Call) -> None:
    if len(call.sinfo_args) != 1:
        raise fail(call, f"requires one out_sinfo, got {len(call.sinfo_args)}")
    if len(call.args) not in (2, 3):
        raise fail(call, f"requires a function and a tuple of arguments, got {len(call.args)}")


def _infer_call_tir(call: Call, bb: Any) -> StructInfo:
    _check_dps_arguments(call)
    return call.sinfo_args[0]


def _infer_inplace(call: Call, bb: Any) -> StructInfo:
    """As of `call_tir`; results that replace inputs are tensors of their shape and data type."""
    _check_dps_arguments(call)
    result, given = call.sinfo_args[0], call.args[1].struct_info_
    results = result.fields if isinstance(result, TupleStructInfo) else (result,)
    inputs = given.fields if isinstance(given, TupleStructInfo) else (given,)
    places = [int(place) for place in call.attrs.inplace_indices]
    if len(places) != len(results):
        raise fail(
            call, f"requires an inplace index for each of {len(results)} results, got {places}"
        )
    written = [place for place in places if place != -1]
    if not written or len({*written}) < len(written):
        raise fail(call, f"requires inplace indices, each input once at most, got {places}")
    for place, out in zip(places, results, strict=True):
        if not -1 <= place < len(inputs):
            raise fail(call, f"requires inplace indices below {len(inputs)} or -1, got {place}")
        if place >= 0 and not _may_replace(inputs[place], out):
            raise fail(call, f"requires an input that can be {out} at {place}, got {inputs[place]}")
    return result


def _may_replace(info: StructInfo | None, out: StructInfo) -> bool:
    """Whether a result may be written over an input."""
    if not isinstance(info, TensorStructInfo) or not isinstance(out, TensorStructInfo):
        return False
    if info.dtype != out.dtype or (info.ndim != out.ndim and -1 not in (info.ndim, out.ndim)):
        return False
    a, b = info.dimensions, out.dimensions
    return (
        a is None or b is None or not any([prove_unequal(x, y) for x, y in zip(a, b, strict=True)])
    )


def _normalize_tuple(bb: Any, call: Call) -> Call:
    """The arguments as a tuple that is written out."""
    arguments = call.args[1]
    if isinstance(arguments, Tuple):
        return call
    value: Any = arguments
    while isinstance(value, Var):
        bound = bb.lookup_binding(value)
        if bound is None:
            break
        value = bound
    info = arguments.struct_info
    if not isinstance(info, TupleStructInfo):
        raise fail(call, f"requires a tuple of arguments, got {arguments} which is {info}")
    fields = [TupleGetItem(arguments, i) for i in range(len(info.fields))]
    written = value if isinstance(value, Tuple) else Tuple(fields)
    return Call(call.op, [call.args[0], written, *call.args[2:]], call.attrs, call.sinfo_args)


_CALL_TIR = define("relax.call_tir", _infer_call_tir, FNormalize=_normalize_tuple)
_CALL_DPS = define("relax.call_dps_packed", _infer_call_tir, FNormalize=_normalize_tuple)
_WITH_GRAD = define(
    "relax.call_tir_with_grad", _infer_call_tir, FNormalize=_normalize_tuple,
    FLegalize=lambda bb, call: without_te_grad(call),
)  # fmt: skip
_INPLACE = define("relax.call_tir_inplace", _infer_inplace, FNormalize=_normalize_tuple)

InplaceAttrs = make_record("CallTIRInplaceAttrs", {"inplace_indices": ()})
InplacePackedAttrs = make_record("CallInplacePackedAttrs", {"inplace_indices": ()})
GradAttrs = make_record("CallTIRWithGradAttrs", {"te_grad_name": "", "te_grad_kwargs": {}})


def _arguments(args: Any) -> RelayExpr:
    """The arguments as one tuple."""
    args = getattr(args, "_expr", args)
    if isinstance(args, RelayExpr) and not isinstance(args, Tuple):
        info = args.struct_info_
        if isinstance(info, TupleStructInfo):
            return args
        return Tuple((args,))
    if isinstance(args, Tuple):
        return args
    return Tuple([as_expr(a) for a in (args if isinstance(args, (list, tuple)) else (args,))])


def _result(out_sinfo: Any) -> StructInfo:
    if isinstance(out_sinfo, (list, tuple)):
        infos = [_result(info) for info in out_sinfo]
        return TupleStructInfo(infos) if len(infos) != 1 else infos[0]
    if hasattr(out_sinfo, "as_struct_info"):
        return out_sinfo.as_struct_info()  # type: ignore[no-any-return]
    if callable(out_sinfo) and not isinstance(out_sinfo, StructInfo):
        return out_sinfo()  # type: ignore[no-any-return]
    if not isinstance(out_sinfo, StructInfo):
        raise TypeError(f"out_sinfo requires struct info, got {out_sinfo!r}")
    return out_sinfo


def _results(sinfo_args: Any) -> list[StructInfo]:
    if sinfo_args is None:
        return []
    items = sinfo_args if isinstance(sinfo_args, (list, tuple)) else [sinfo_args]
    return [_result(item) for item in items]


def _numbers(tir_vars: Any) -> list[RelayExpr]:
    if tir_vars is None:
        return []
    return [tir_vars if isinstance(tir_vars, ShapeExpr) else ShapeExpr(tir_vars)]


def call_tir(
    gvar: GlobalVar,
    args: Any,
    out_sinfo: TensorStructInfo | Sequence[TensorStructInfo],
    tir_vars: Any = None,
) -> Call:
    """Call a loop program, whose last parameters are its results.

    Parameters
    ----------
    gvar : GlobalVar
        The loop program.
    args : Expr
        The inputs: one tensor, or a tuple of them.
    out_sinfo : StructInfo or list of StructInfo
        Of the results.
    tir_vars : ShapeExpr or tuple of PrimExpr, optional
        What the loop program takes beside tensors.
    """
    operands = [as_expr(gvar), _arguments(args), *_numbers(tir_vars)]
    return Call(_CALL_TIR, operands, None, [_result(out_sinfo)])


def call_tir_with_grad(
    gvar: GlobalVar,
    args: Any,
    out_sinfo: TensorStructInfo | Sequence[TensorStructInfo],
    te_grad_name: str,
    te_grad_kwargs: Mapping[str, Any] | None = None,
    tir_vars: Any = None,
) -> Call:
    """As `call_tir`, with the name of the registered function that computes the gradient.

    Parameters
    ----------
    gvar, args, out_sinfo, tir_vars
        As of `call_tir`.
    te_grad_name : str
        Of a function registered by ``relax.training.utils.register_te_gradient``.
    te_grad_kwargs : dict, optional
        What it takes.
    """
    attrs = GradAttrs(str(te_grad_name), Map(te_grad_kwargs or {}))
    operands = [as_expr(gvar), _arguments(args), *_numbers(tir_vars)]
    return Call(_WITH_GRAD, operands, attrs, [_result(out_sinfo)])


def without_te_grad(call: Call) -> Call:
    """A call_tir_with_grad as a call_tir."""
    return Call(_CALL_TIR, call.args, None, call.sinfo_args, call.span)


def call_tir_inplace(
    gvar: GlobalVar,
    args: Any,
    inplace_indices: int | Sequence[int],
    out_sinfo: TensorStructInfo | Sequence[TensorStructInfo],
    tir_vars: Any = None,
) -> Call:
    """Call a loop program that writes some results over its inputs.

    Parameters
    ----------
    gvar, args, out_sinfo, tir_vars
        As of `call_tir`.
    inplace_indices : int or list of int
        For each result the input that it replaces, or -1 for a new tensor.
    """
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    operands = [as_expr(gvar), _arguments(args), *_numbers(tir_vars)]
    attrs = InplaceAttrs(tuple([int(i) for i in indices]))
    return Call(_INPLACE, operands, attrs, [_result(out_sinfo)])


def call_dps_packed(func: str | RelayExpr, args: Any, out_sinfo: Any) -> Call:
    """Call a packed function, whose last parameters are its results.

    Parameters
    ----------
    func : str or Expr
        Its global name.
    args, out_sinfo :
        As of `call_tir`.
    """
    callee = ExternFunc(func) if isinstance(func, str) else as_expr(func)
    return Call(_CALL_DPS, [callee, _arguments(args)], None, [_result(out_sinfo)])


# ---- calls of packed functions


def _infer_of_callee(call: Call, bb: Any) -> StructInfo:
    """What a call of the first argument with the others returns."""
    callee, *args = call.args
    if call.sinfo_args:
        return _of_sinfo_arg(call, bb)
    inner = Call(callee, args, None, call.sinfo_args)
    return bb.infer(inner)  # type: ignore[no-any-return]


_PURE_PACKED = define("relax.call_pure_packed", _infer_of_callee)
_INPLACE_PACKED = define("relax.call_inplace_packed", _infer_of_callee)
_INVOKE_PURE = define("relax.invoke_pure_closure", _of_sinfo_arg)
_INVOKE = define("relax.invoke_closure", _of_sinfo_arg, pure=False)
_MAKE_CLOSURE = define("relax.make_closure", lambda call, bb: ObjectStructInfo())


def call_builtin_with_ctx(func: Any, args: Any, *, sinfo_args: Any = None) -> Call:
    """Call a function of the virtual machine, which takes the machine as its first argument.

    Parameters
    ----------
    func : str or Expr
    args : Expr or tuple of Expr
    sinfo_args : StructInfo or list of StructInfo, optional
        Of the result.
    """
    callee = ExternFunc(func) if isinstance(func, str) else as_expr(func)
    fields = args if isinstance(args, (RelayExpr, list, tuple)) else (args,)
    return Call(_WITH_CTX, [callee, _arguments(fields)], None, _results(sinfo_args))


_WITH_CTX = define("relax.call_builtin_with_ctx", infer_by_sinfo_args, pure=False)


def make_closure(func: RelayExpr, args: Any) -> Call:
    """A function with values of its free variables.

    Parameters
    ----------
    func : Expr
        The lifted function.
    args : Expr
        The captured values.
    """
    return Call(_MAKE_CLOSURE, [func, _arguments(args)])


def invoke_closure(closure: RelayExpr, args: Any, sinfo_args: Any) -> Call:
    """Call a closure.

    Parameters
    ----------
    closure : Expr
    args : Expr
    sinfo_args : StructInfo or list of StructInfo
        Of the result.
    """
    return Call(_INVOKE, [closure, _arguments(args)], None, _results(sinfo_args))


def invoke_pure_closure(closure: RelayExpr, args: Any, sinfo_args: Any) -> Call:
    """Call a closure that has no side effects; see `invoke_closure`."""
    return Call(_INVOKE_PURE, [closure, _arguments(args)], None, _results(sinfo_args))


def call_pure_packed(func: Any, *args: Any, sinfo_args: Any) -> Call:
    """Call a packed function of which it is promised that it has no side effects.

    Parameters
    ----------
    func : str or ExternFunc
    args : Expr
    sinfo_args : StructInfo or list of StructInfo
        Of the result.
    """
    callee = ExternFunc(func) if isinstance(func, str) else as_expr(func)
    if sinfo_args is None:
        raise ValueError("R.call_pure_packed is required to have type_args")
    operands = [callee, *[as_expr(a) for a in args]]
    return Call(_PURE_PACKED, operands, None, _results(sinfo_args))


def call_inplace_packed(
    func: Any, *args: Any, inplace_indices: int | Sequence[int], sinfo_args: Any
) -> Call:
    """Call a packed function that writes over some of its arguments and returns them.

    Parameters
    ----------
    func : str or ExternFunc
    args : Expr
    inplace_indices : int or list of int
        Of the arguments that it returns; -1: a new value.
    sinfo_args : StructInfo or list of StructInfo
        Of the result.
    """
    callee = ExternFunc(func) if isinstance(func, str) else as_expr(func)
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    operands = [callee, *[as_expr(a) for a in args]]
    attrs = InplacePackedAttrs(tuple(indices))
    return Call(_INPLACE_PACKED, operands, attrs, _results(sinfo_args))


# ---- input and output, checks


@operator("relax.null_value", infer=lambda call, bb: ObjectStructInfo())
def null_value() -> Expr:
    """No value: what optional arguments of functions of the runtime may be."""


def _tuple_of_nothing(call: Call, bb: Any) -> StructInfo:
    """An empty tuple."""
    return TupleStructInfo([])


_PRINT = define("relax.print", _tuple_of_nothing, pure=False, FCallPacked="relax.run.print")


def _infer_assert(call: Call, bb: Any) -> StructInfo:
    """An empty tuple."""
    if not call.args:
        raise fail(call, "requires a condition")
    info = call.args[0].struct_info
    is_scalar = isinstance(info, (TensorStructInfo, PrimStructInfo)) and info.dtype.is_bool
    is_tensor = isinstance(info, TensorStructInfo)
    if not is_scalar or (is_tensor and info.ndim not in (-1, 0)):
        raise fail(call, f"requires a scalar of bool as condition, got {info}")
    return TupleStructInfo([])


_ASSERT = define("relax.assert_op", _infer_assert, pure=False, FCallPacked="relax.run.assert_op")


def print(*values: Any, format: str | RelayExpr = "") -> Call:
    """Print values when the program runs.

    Parameters
    ----------
    values : Expr
    format : str
        A Python format, ``"{} and {}"``; by default the values with spaces between them.
    """
    text = StringImm(format) if isinstance(format, str) else format
    return Call(_PRINT, [text, *[as_expr(v) for v in values]])


def assert_op(condition: Any, format_args: Any = None, format: str | RelayExpr = "") -> Call:
    """Raise an error at run time unless a condition holds.

    Parameters
    ----------
    condition : Expr or PrimExpr
        A scalar of bool.
    format_args : Expr or list of Expr, optional
        What the message names.
    format : str
        The message, a Python format.
    """
    values = format_args if isinstance(format_args, (list, tuple)) else [format_args]
    if format_args is None:
        values = []
    text = StringImm(format) if isinstance(format, str) else format
    return Call(_ASSERT, [as_expr(condition), text, *[as_expr(v) for v in values]])


# ---- shapes


def _infer_shape_of(call: Call, bb: Any) -> StructInfo:
    """A shape."""
    info = tensors(call, 1)[0]
    dims = info.dimensions
    return ShapeStructInfo(dims) if dims is not None else ShapeStructInfo(ndim=info.ndim)


@operator("relax.shape_of", infer=_infer_shape_of)
def shape_of(expr: Expr) -> Expr:
    """The shape of a tensor.

    Parameters
    ----------
    expr : relax.Expr
        The tensor.
    """


def _infer_tensor_to_shape(call: Call, bb: Any) -> StructInfo:
    """A shape."""
    info = tensors(call, 1)[0]
    if info.ndim not in (-1, 1):
        raise fail(call, f"requires a tensor of one dimension, got {info}")
    dims = info.dimensions
    if dims is not None and hasattr(dims[0], "value"):
        return ShapeStructInfo(ndim=dims[0].value)
    return ShapeStructInfo(ndim=-1)


@operator("relax.tensor_to_shape", infer=_infer_tensor_to_shape)
def tensor_to_shape(expr: Expr) -> Expr:
    """The shape whose dimensions are the elements of a tensor.

    Parameters
    ----------
    expr : relax.Expr
        The tensor, of one dimension.
    """


def _infer_shape_to_tensor(call: Call, bb: Any) -> StructInfo:
    """A vector of dtype int64, with an element for each dimension."""
    check_count(call, 1)
    info = call.args[0].struct_info
    if not isinstance(info, ShapeStructInfo):
        raise fail(call, f"requires a Shape, got {info}")
    if info.ndim >= 0:
        return TensorStructInfo((info.ndim,), "int64")
    return TensorStructInfo(None, "int64", ndim=1)


@operator(
    "relax.shape_to_tensor", infer=_infer_shape_to_tensor, FCallPacked="relax.run.shape_to_tensor"
)
def shape_to_tensor(expr: Expr) -> Expr:
    """A tensor of int64 of the dimensions of a shape.

    Parameters
    ----------
    expr : relax.Expr
        The shape.
    """


# ---- devices


def _device(value: Any) -> Any:
    """A device; texts name one of the module that is being parsed."""
    if not isinstance(value, str):
        return value
    kind, _, index = value.partition(":")
    return lookup_vdevice(kind, int(index or 0))


def _on_device(call: Call, bb: Any) -> StructInfo:
    """A tensor of the operand's shape and dtype, on the device."""
    info = tensors(call, 1)[0]
    device = call.attrs.dst_vdevice
    if info.shape is not None:
        return TensorStructInfo(info.shape, info.dtype, device)
    return TensorStructInfo(None, info.dtype, device, info.ndim)


@operator("relax.to_vdevice", "ToVDeviceAttrs", infer=_on_device)
def to_vdevice(data: Expr, dst_vdevice: Attr) -> Expr:
    """A tensor on another device.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    dst_vdevice : VDevice
        The device.
    """
    return {"dst_vdevice": _device(dst_vdevice)}


@operator("relax.hint_on_device", "HintOnDeviceAttrs", infer=lambda call, bb: tensors(call, 1)[0])
def hint_on_device(data: Expr, dst_vdevice: Attr) -> Expr:
    """Say on which device a tensor should be.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    dst_vdevice : Device
        The device.
    """


def register_gradient(op_name: str, fgradient: Any = None, level: int = 10) -> Any:
    """Set the gradient of an operator; a decorator without the function.

    Parameters
    ----------
    op_name : str
    fgradient : callable
        From (original variable, original call, gradient of the output, block builder) to the
        gradients of the arguments.
    level : int
        Of two registrations the one of the higher level holds.
    """
    return tvm.ir.register_op_attr(op_name, "FPrimalGradient", fgradient, level)

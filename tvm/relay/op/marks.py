"""Operators that change no value: hints to passes, places where values live, calls of a debugger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import _ffi, te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Call, VarWithFields
from tvm.relay.function import Function, FunctionWithFields
from tvm.relay.traverse import substitute
from tvm.runtime import Device
from tvm.runtime import device as make_device
from tvm.target.virtual_device import VirtualDevice
from tvm.topi.loops import load, nest, store

from .registry import OpPattern, define_op, ops
from .types import expect_tensor


class CastHintAttrs(Attrs, key="relay.attrs.CastHintAttrs"):
    """The dtype that a value is meant to have."""

    dtype: str


class OnDeviceAttrs(Attrs, key="relay.attrs.OnDeviceAttrs"):
    """Where a value lives, and whether that holds inside and outside of the call."""

    virtual_device: VirtualDevice
    constrain_result: bool = False
    constrain_body: bool = True


class DeviceCopyAttrs(Attrs, key="relay.attrs.DeviceCopyAttrs"):
    """Where a value comes from and goes to."""

    src_virtual_device: VirtualDevice
    dst_virtual_device: VirtualDevice


class DebugAttrs(Attrs, key="relay.attrs.DebugAttrs"):
    """The global function that is called with the value."""

    debug_func: str = ""


class WithFuncIdAttrs(Attrs, key="relay.attrs.WithFuncIdAttrs"):
    """The name of the function that a value came from."""

    relay_func_id: str


def _same_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    return arg_types[0]


def _identity(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    return [topi.identity(x) for x in inputs]


def _hint(name: str, attrs_type: type[Attrs] | None = None) -> Op:
    """An operator that no kernel spans, and that gives its argument."""
    return define_op(
        name,
        attrs_type,
        inputs=("data",),
        infer_type=_same_type,
        fuse=OpPattern.OPAQUE,
        compute=_identity,
        gradient=lambda call, grad: [grad],
        fold=lambda attrs, arrays, out_type: list(arrays),
    )


def _compute_debug(
    attrs: DebugAttrs, inputs: Sequence[te.Tensor], out_type: Type
) -> list[te.Tensor]:
    (data,) = inputs

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        copied = nest("i", data.shape, lambda i: store(outs[0], load(ins[0], i), i))
        called = tir.Evaluate(tir.call_packed(attrs.debug_func or "relay.debug", ins[0]))
        return tir.stmt_seq(called, copied)

    return [te.extern([data.shape], [data], body, dtype=data.dtype, name="debug")]


def _schedule_debug(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_extern(outs)


def _copied_back(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    ends = call.attrs
    return [device_copy(grad, ends.dst_virtual_device, ends.src_virtual_device)]


_hint("annotation.stop_fusion")
_hint("annotation.checkpoint")
_hint("annotation.bitpack_start")
_hint("annotation.bitpack_end")
_hint("annotation.cast_hint", CastHintAttrs)
define_op(
    "annotation.with_funcid",
    WithFuncIdAttrs,
    inputs=("data",),
    infer_type=_same_type,
    fuse=OpPattern.ELEMWISE,
    compute=_identity,
    gradient=lambda call, grad: [grad],
    fold=lambda attrs, arrays, out_type: list(arrays),
)
define_op(
    "on_device",
    OnDeviceAttrs,
    inputs=("body",),
    infer_type=_same_type,
    fuse=OpPattern.ELEMWISE,
    compute=_identity,
    gradient=lambda call, grad: [grad],
    fold=lambda attrs, arrays, out_type: list(arrays),
)
define_op(
    "device_copy",
    DeviceCopyAttrs,
    inputs=("data",),
    infer_type=_same_type,
    fuse=OpPattern.OPAQUE,
    compute=_identity,
    gradient=_copied_back,
    fold=lambda attrs, arrays, out_type: list(arrays),
)
define_op(
    "debug",
    DebugAttrs,
    inputs=("program",),
    infer_type=lambda attrs, arg_types: expect_tensor(arg_types[0], "debug"),
    fuse=OpPattern.OPAQUE,
    compute=_compute_debug,
    schedules={"generic": _schedule_debug, "cpu": _schedule_debug},
)
ops.debug.set_attr("TOpIsStateful", True)


def stop_fusion(data: RelayExpr) -> Call:
    """`data`, in a kernel apart from what reads it."""
    return ops.annotation.stop_fusion(data)


def checkpoint(data: RelayExpr) -> Call:
    """`data`, which the backward pass keeps rather than what leads to it."""
    return ops.annotation.checkpoint(data)


def cast_hint(data: RelayExpr, dtype: str) -> Call:
    """`data`, which is meant to have a dtype once it is quantised."""
    return ops.annotation.cast_hint(data, dtype=dtype)


def bitpack_start(data: RelayExpr) -> Call:
    """`data`, from which on values are packed."""
    return ops.annotation.bitpack_start(data)


def bitpack_end(data: RelayExpr) -> Call:
    """`data`, up to which values are packed."""
    return ops.annotation.bitpack_end(data)


def _place(device: object) -> VirtualDevice:
    if isinstance(device, VirtualDevice):
        return device
    if isinstance(device, (str, int)):
        device = make_device(device, 0)
    if not isinstance(device, Device):
        raise ValueError(f"on_device requires a Device or its name, got {type(device).__name__}")
    return VirtualDevice(device)


def on_device(
    body: RelayExpr, device: Any, constrain_result: bool = False, constrain_body: bool = True
) -> Call:
    """A value on a device.

    Parameters
    ----------
    body : relay.Expr
        The value.
    device : Device, str or VirtualDevice
        Where it is computed.
    constrain_result : bool
        Whether the result of the call lives there too.
    constrain_body : bool
        Whether the value lives there; False: only the result does.
    """
    return ops.on_device(
        body, virtual_device=_place(device), constrain_result=bool(constrain_result),
        constrain_body=bool(constrain_body),
    )  # fmt: skip


def function_on_device(
    function: Function, param_devices: Sequence[Any], result_device: Any
) -> Function:
    """A function whose parameters and result are on devices.

    Parameters
    ----------
    function : relay.Function
        The function.
    param_devices : sequence of Device, str or VirtualDevice
        One for each parameter.
    result_device : Device, str or VirtualDevice
        The result's.
    """
    if len(param_devices) != len(function.params):
        raise ValueError(
            f"function_on_device requires a device for each of {len(function.params)} parameters, "
            f"got {len(param_devices)}"
        )
    params = [
        VarWithFields(param, virtual_device=_place(device))
        for param, device in zip(function.params, param_devices, strict=True)
    ]
    body = substitute(function.body, dict(zip(function.params, params, strict=True)))
    placed = function.replace(params=tuple(params), body=body)
    return FunctionWithFields(placed, virtual_device=_place(result_device))


def device_copy(data: RelayExpr, src_device: Any, dst_device: Any) -> Call:
    """A value copied from one device to another.

    Parameters
    ----------
    data : relay.Expr
        The value.
    src_device, dst_device : Device, str or VirtualDevice
        Where it is, and where it goes.
    """
    return ops.device_copy(
        data, src_virtual_device=_place(src_device), dst_virtual_device=_place(dst_device)
    )


def debug(expr: RelayExpr, debug_func: Callable[[Any], Any] | None = None) -> Call:
    """Call a function with a value whenever it is computed.

    Parameters
    ----------
    expr : relay.Expr
        A tensor.
    debug_func : callable, optional
        Called with the tensor; by default the global function "relay.debug", which prints it.
    """
    if debug_func is None:
        return ops.debug(expr)
    name = f"debugger_func{id(debug_func):x}"
    _ffi.register_func(name, debug_func, override=True)
    return ops.debug(expr, debug_func=name)


@_ffi.register_func("relay.debug")
def _print_tensor(tensor: Any) -> None:
    with np.printoptions(threshold=100):
        print(f"debug: {tensor.dtype} {tuple(tensor.shape)}\n{tensor.numpy()}")

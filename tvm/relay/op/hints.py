"""Operators that change no value: hints to passes, positions where values live, calls of a debugger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from tvm import _ffi, te, tir, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Call, VarWithFields
from tvm.relay.function import Function, FunctionWithFields
from tvm.relay.traverse import substitute
from tvm.runtime import Device
from tvm.runtime import device as make_device
from tvm.target.virtual_device import VirtualDevice
from tvm.topi.loops import load, nest, store

from .operator import Attribute, Expr, operator
from .registry import OpPattern
from .schedules import EXTERN_SCHEDULES
from .types import expect_tensor

# of operators that give their argument
_IDENTITY: dict[str, Any] = {
    "infer_type": lambda attrs, arg_types: arg_types[0],
    "compute": lambda attrs, inputs, out_type: [topi.identity(x) for x in inputs],
    "fold": lambda attrs, arrays, out_type: list(arrays),
}
# of those that no kernel spans
_HINT: dict[str, Any] = {
    **_IDENTITY, "fuse": OpPattern.OPAQUE, "gradient": lambda call, grad: [grad],
}  # fmt: skip


@operator("annotation.stop_fusion", **_HINT)
def stop_fusion(data: Expr) -> Call:
    """`data`, in another kernel than what reads it."""


@operator("annotation.checkpoint", **_HINT)
def checkpoint(data: Expr) -> Call:
    """`data`, which the backward pass keeps rather than what leads to it."""


@operator("annotation.cast_hint", **_HINT)
def cast_hint(data: Expr, dtype: str) -> Call:
    """`data`, which is meant to have a dtype once it is quantised."""


@operator("annotation.bitpack_start", **_HINT)
def bitpack_start(data: Expr) -> Call:
    """`data`, from which on values are packed."""


@operator("annotation.bitpack_end", **_HINT)
def bitpack_end(data: Expr) -> Call:
    """`data`, up to which values are packed."""


@operator("annotation.with_funcid", "WithFuncIdAttrs", **{**_HINT, "fuse": OpPattern.ELEMWISE})
def with_funcid(data: Expr, relay_func_id: str) -> Call:
    """`data`, which came from the function of a name."""


def _place(device: object) -> VirtualDevice:
    if isinstance(device, VirtualDevice):
        return device
    if isinstance(device, (str, int)):
        device = make_device(device, 0)
    if not isinstance(device, Device):
        raise ValueError(f"on_device requires a Device or its name, got {type(device).__name__}")
    return VirtualDevice(device)


def at_device(field: str) -> Attribute:
    """A virtual device, from a device or its name."""
    return Attribute("VirtualDevice", _place, field)


@operator("on_device", **{**_HINT, "fuse": OpPattern.ELEMWISE})
def on_device(
    body: Expr,
    device: Annotated[Any, at_device("virtual_device")],
    constrain_result: bool = False,
    constrain_body: bool = True,
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


def _copied_back(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    ends = call.attrs
    return [device_copy(grad, ends.dst_virtual_device, ends.src_virtual_device)]


@operator("device_copy", gradient=_copied_back, fuse=OpPattern.OPAQUE, **_IDENTITY)
def device_copy(
    data: Expr,
    src_device: Annotated[Any, at_device("src_virtual_device")],
    dst_device: Annotated[Any, at_device("dst_virtual_device")],
) -> Call:
    """A value copied from one device to another.

    Parameters
    ----------
    data : relay.Expr
        The value.
    src_device, dst_device : Device, str or VirtualDevice
        Where it is, and where it goes.
    """


def _compute_debug(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    (data,) = inputs

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        copied = nest("i", data.shape, lambda i: store(outs[0], load(ins[0], i), i))
        called = tir.Evaluate(tir.call_packed(attrs.debug_func or "relay.debug", ins[0]))
        return tir.stmt_seq(called, copied)

    return [te.extern([data.shape], [data], body, dtype=data.dtype, name="debug")]


def _name_of(function: Callable[[Any], Any] | None) -> str:
    """The global function under which a program calls this one."""
    if function is None:
        return ""
    name = f"debugger_func{id(function):x}"
    _ffi.register_func(name, function, override=True)
    return name


@operator(
    "debug",
    inputs=("program",),
    infer_type=lambda attrs, arg_types: expect_tensor(arg_types[0], "debug"),
    compute=_compute_debug,
    schedules=EXTERN_SCHEDULES,
)
def debug(
    expr: Expr,
    debug_func: Annotated[Callable[[Any], Any] | None, Attribute("str", _name_of)] = None,
) -> Call:
    """Call a function with a value whenever it is computed.

    Parameters
    ----------
    expr : relay.Expr
        A tensor.
    debug_func : callable, optional
        Called with the tensor; by default the global function "relay.debug", which prints it.
    """


debug.op.set_attr("TOpIsStateful", True)


@_ffi.register_func("relay.debug")
def _print_tensor(tensor: Any) -> None:
    with np.printoptions(threshold=100):
        print(f"debug: {tensor.dtype} {tuple(tensor.shape)}\n{tensor.numpy()}")

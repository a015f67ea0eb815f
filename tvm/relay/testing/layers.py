"""Layers that make their own weights."""

from __future__ import annotations

from typing import Any

from tvm import relay
from tvm.ir.expr import RelayExpr


def batch_norm_infer(
    data: RelayExpr,
    gamma: RelayExpr | None = None,
    beta: RelayExpr | None = None,
    moving_mean: RelayExpr | None = None,
    moving_var: RelayExpr | None = None,
    **kwargs: Any,
) -> RelayExpr:
    """The normalised data of a batch normalisation; `name` prefixes its parameters."""
    name = kwargs.pop("name")
    return relay.nn.batch_norm(
        data,
        gamma=gamma or relay.var(f"{name}_gamma"),
        beta=beta or relay.var(f"{name}_beta"),
        moving_mean=moving_mean or relay.var(f"{name}_moving_mean"),
        moving_var=moving_var or relay.var(f"{name}_moving_var"),
        **kwargs,
    )[0]


def _weight(weight: RelayExpr | None, kwargs: dict[str, Any]) -> RelayExpr:
    name = kwargs.pop("name", None)
    return weight if weight is not None else relay.var(f"{name}_weight")


def conv2d(data: RelayExpr, weight: RelayExpr | None = None, **kwargs: Any) -> RelayExpr:
    """A convolution over two axes."""
    weight = _weight(weight, kwargs)
    return relay.nn.conv2d(data, weight, **kwargs)


def conv3d(data: RelayExpr, weight: RelayExpr | None = None, **kwargs: Any) -> RelayExpr:
    """A convolution over three axes."""
    weight = _weight(weight, kwargs)
    return relay.nn.conv3d(data, weight, **kwargs)


def conv2d_transpose(data: RelayExpr, weight: RelayExpr | None = None, **kwargs: Any) -> RelayExpr:
    """A transposed convolution over two axes."""
    weight = _weight(weight, kwargs)
    return relay.nn.conv2d_transpose(data, weight, **kwargs)


def dense_add_bias(
    data: RelayExpr,
    weight: RelayExpr | None = None,
    bias: RelayExpr | None = None,
    units: int | None = None,
    **kwargs: Any,
) -> RelayExpr:
    """A dense layer with bias."""
    name = kwargs.pop("name")
    weight = weight if weight is not None else relay.var(f"{name}_weight")
    bias = bias if bias is not None else relay.var(f"{name}_bias")
    data = relay.nn.dense(data, weight, units, **kwargs)
    return relay.nn.bias_add(data, bias, axis=-1)


_KERNEL_LAYOUTS = {"NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The usual layout of weights beside a layout of data."""
    if data_layout not in _KERNEL_LAYOUTS:
        raise ValueError(
            f"the data layout must be one of {list(_KERNEL_LAYOUTS)}, got {data_layout}"
        )
    layout = _KERNEL_LAYOUTS[data_layout]
    return "HWOI" if is_depthwise and layout == "HWIO" else layout

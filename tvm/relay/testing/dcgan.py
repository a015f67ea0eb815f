"""The generator of DCGAN: transposed convolutions, after Radford et al. (2015)."""

from __future__ import annotations

from typing import Any

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import layers
from .init import create_workload

_KERNEL_LAYOUTS = {"NCHW": "IOHW", "NHWC": "HWOI"}


def deconv2d(
    data: RelayExpr,
    ishape: tuple[int, ...],
    oshape: tuple[int, ...],
    kshape: tuple[int, int],
    layout: str,
    name: str,
    stride: tuple[int, int] = (2, 2),
) -> RelayExpr:
    """A transposed convolution, padded so that it maps `ishape` to `oshape` (channels, height, width)."""
    if layout not in _KERNEL_LAYOUTS:
        raise ValueError(f"deconv2d requires layout NCHW or NHWC, got {layout}")
    surplus = [
        (ishape[axis + 1] - 1) * stride[axis] + kshape[axis] - oshape[axis + 1] for axis in (0, 1)
    ]
    padding = tuple((extra + 1) // 2 for extra in surplus)
    return layers.conv2d_transpose(
        data,
        kernel_size=kshape,
        strides=stride,
        channels=oshape[0],
        padding=padding,
        output_padding=tuple(2 * pad - extra for pad, extra in zip(padding, surplus, strict=True)),
        data_layout=layout,
        kernel_layout=_KERNEL_LAYOUTS[layout],
        name=name,
    )


def deconv2d_bn_relu(data: RelayExpr, prefix: str, **kwargs: Any) -> RelayExpr:
    """`deconv2d`, normalised and activated; `prefix` names the parameters."""
    value = deconv2d(data, name=f"{prefix}_deconv", **kwargs)
    axis = kwargs["layout"].index("C")
    value = layers.batch_norm_infer(
        value, epsilon=1e-5, axis=axis, scale=False, name=f"{prefix}_batch_norm"
    )
    return relay.nn.relu(value)


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: tuple[int, int, int] = (3, 64, 64),
    ngf: int = 128,
    code: RelayExpr | None = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> relay.Function:
    """The network from codes of `random_len` numbers, or from `code`, to images of 64 x 64."""
    if tuple(oshape[-2:]) != (64, 64):
        raise ValueError(f"the generator makes images of 64 x 64, oshape is {tuple(oshape)}")
    data = relay.var("data", shape=(batch_size, random_len), dtype=dtype) if code is None else code
    value = relay.nn.dense(data, weight=relay.var("dense_weight"), units=4 * 4 * ngf * 8)
    shape = (-1, ngf * 8, 4, 4) if layout == "NCHW" else (-1, 4, 4, ngf * 8)
    value = relay.reshape(relay.nn.relu(value), newshape=shape)
    ishape = (ngf * 8, 4, 4)
    for index in (2, 3, 4):
        next_shape = (ishape[0] // 2, ishape[1] * 2, ishape[2] * 2)
        value = deconv2d_bn_relu(
            value, f"g{index}", ishape=ishape, oshape=next_shape, kshape=(4, 4), layout=layout
        )
        ishape = next_shape
    value = deconv2d(value, ishape, tuple(oshape[-3:]), (4, 4), layout, "g5_deconv")
    result = relay.tanh(value)
    return relay.Function(relay.analysis.free_vars(result), result)


def get_workload(
    batch_size: int,
    oshape: tuple[int, int, int] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, layout=layout, dtype=dtype))

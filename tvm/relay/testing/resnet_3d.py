"""The residual networks of `resnet`, over volumes such as videos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relay
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from . import resnet as over_images
from .init import create_workload


def residual_unit(
    data: RelayExpr,
    num_filter: int,
    stride: tuple[int, int, int],
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
) -> RelayExpr:
    """`resnet.residual_unit` with the layouts of volumes."""
    return over_images.residual_unit(
        data, num_filter, stride, dim_match, name, bottle_neck, data_layout, kernel_layout
    )


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sequence[int],
    bottle_neck: bool = True,
    layout: str = "NCDHW",
    dtype: str = "float32",
) -> relay.Function:
    """`resnet.resnet` with the layout of volumes."""
    return over_images.resnet(
        units, num_stages, filter_list, num_classes, data_shape, bottle_neck, layout, dtype
    )


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> relay.Function:
    """`resnet.get_net` for volumes of channels, depth, height and width."""
    return over_images.get_net(
        batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs
    )


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The network with parameters."""
    net = get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs)
    return create_workload(net)

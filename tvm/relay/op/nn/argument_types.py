"""Types of arguments that programs leave out.

    %w = relay.var("w")
    nn.conv2d(%x: Tensor[(1, 3, 8, 8), float32], %w, channels=4, kernel_size=[3, 3])

gives `%w` the type Tensor[(4, 3, 3, 3), float32]: layers with weights know their shapes from the
data and their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.attrs import Attrs
from tvm.ir.type import TensorType, Type

from ..layout_shapes import axes_extents, shape_in_layout
from ..types import Dim, apply, shape_of_type, tensor


def _with_kernel(attrs: Attrs, known: Sequence[Type | None], sizes: dict[str, Dim]) -> list[Type | None]:  # fmt: skip
    """The last argument is a kernel of these channels and the window that attributes tell."""
    window = [axis for axis in attrs["kernel_layout"] if axis.isupper() and axis not in "OI"]
    sizes = {**sizes, **dict(zip(window, attrs["kernel_size"], strict=True))}
    shape = shape_in_layout(sizes, attrs["kernel_layout"])
    return [*known[:-1], tensor(shape, data_type(known).dtype)]


def data_type(known: Sequence[Type | None]) -> TensorType:
    """The first argument's type: operators are asked only where it is known."""
    assert isinstance(known[0], TensorType)
    return known[0]


def _channels_of_data(attrs: Attrs, data: TensorType) -> Dim:
    layout = attrs["data_layout"]
    return axes_extents(shape_of_type(data), layout, "a convolution")["C"]


def of_convolution(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    channels, groups = attrs["channels"], getattr(attrs, "groups", 1)
    if channels is None or attrs["kernel_size"] is None:
        return list(known)
    inner = _channels_of_data(attrs, data_type(known))
    sizes = {"O": channels, "I": apply(lambda c: c // groups, inner)}
    if groups > 1 and attrs["kernel_layout"] == "HWOI":  # the channel multiplier is in I
        sizes = {"O": inner, "I": apply(lambda c: channels // c, inner)}
    return _with_kernel(attrs, known, sizes)


def of_transposed_convolution(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    if attrs["channels"] is None or attrs["kernel_size"] is None:
        return list(known)
    sizes = {
        "I": _channels_of_data(attrs, data_type(known)),
        "O": attrs["channels"] // attrs["groups"],
    }
    return _with_kernel(attrs, known, sizes)


def of_dense(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    data = data_type(known)
    if attrs["units"] is None:
        return list(known)
    return [data, tensor((attrs["units"], shape_of_type(data)[-1]), data.dtype)]


def of_matmul(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    data = data_type(known)
    if attrs["units"] is None:
        return list(known)
    depth = shape_of_type(data)[-2 if attrs["transpose_a"] else -1]
    shape = (attrs["units"], depth) if attrs["transpose_b"] else (depth, attrs["units"])
    return [data, tensor(shape, data.dtype)]

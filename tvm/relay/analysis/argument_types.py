"""Types of arguments that programs leave out.

    %w = relay.var("w")
    nn.conv2d(%x: Tensor[(1, 3, 8, 8), float32], %w, channels=4, kernel_size=[3, 3])

gives `%w` the type Tensor[(4, 3, 3, 3), float32]: layers with weights know their shapes from the
data and their attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir.attrs import Attrs
from tvm.ir.type import TensorType, Type

# (attributes, the types known so far) -> all types, None where nothing can be said
Fill = Callable[[Attrs, Sequence[Type | None]], "list[Type | None]"]


def fill_argument_types(
    op_name: str, attrs: Attrs, known: Sequence[Type | None]
) -> list[Type | None]:
    """The argument types of a call, those that were unknown derived where possible."""
    fill = _FILL.get(op_name)
    data = known[0] if known else None
    if fill is None or not isinstance(data, TensorType):
        return list(known)
    derived = fill(attrs, known)
    return [k if k is not None else d for k, d in zip(known, derived, strict=True)]


def _conv(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    data = known[0]
    assert isinstance(data, TensorType)
    channels, window = attrs["channels"], attrs["kernel_size"]
    data_layout, kernel_layout = str(attrs["data_layout"]), str(attrs["kernel_layout"])
    if channels is None or window is None or not (data_layout + kernel_layout).isupper():
        return list(known)
    in_channels = _extent(data, data_layout.index("C"))
    sizes = {"O": channels, "I": in_channels // attrs["groups"]}
    if kernel_layout == "IOHW" and "output_padding" in attrs:  # transposed convolution
        sizes = {"I": in_channels, "O": channels // attrs["groups"]}
    if attrs["groups"] == in_channels and attrs["groups"] > 1 and kernel_layout != "IOHW":
        sizes = {"O": in_channels, "I": channels // in_channels}
    sizes.update(zip([c for c in kernel_layout if c not in "OI"], window, strict=True))
    shape = tuple([sizes[c] for c in kernel_layout])
    return [data, TensorType(shape, data.dtype)]


def _dense(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    data = known[0]
    assert isinstance(data, TensorType)
    if attrs["units"] is None:
        return list(known)
    return [data, TensorType((attrs["units"], data.shape[-1]), data.dtype)]


def _per_channel(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    """All arguments but the first are vectors along `axis`."""
    data = known[0]
    assert isinstance(data, TensorType)
    vector = TensorType((data.shape[attrs["axis"] % len(data.shape)],), data.dtype)
    return [data, *[vector] * (len(known) - 1)]


def _extent(ty: TensorType, axis: int) -> int:
    return int(ty.concrete_shape[axis])


_FILL: dict[str, Fill] = {
    "nn.conv1d": _conv,
    "nn.conv2d": _conv,
    "nn.conv3d": _conv,
    "nn.conv2d_transpose": _conv,
    "nn.dense": _dense,
    "nn.bias_add": _per_channel,
    "nn.batch_norm": _per_channel,
    "nn.layer_norm": _per_channel,
    "nn.instance_norm": _per_channel,
    "nn.group_norm": _per_channel,
    "nn.prelu": _per_channel,
}

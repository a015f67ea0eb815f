"""cuDNN is not among the libraries of this release; programs that ask for it learn so.

cudnn.exists()                                                   ->    False
cudnn.conv_output_shape(0, 1, 1, 1, x.shape, w.shape, t, t)      ->    shapes are computed without it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tvm.error import TVMError

_INSTEAD = "code is generated for processors and GPUs, by the targets llvm, c, opencl and cuda"
_LAYOUTS = ("NCHW", "NHWC")  # by the library's numbers of formats


def exists() -> bool:
    """Whether kernels of cuDNN can be called: never, kernels are this package's own."""
    return False


def conv_output_shape(
    tensor_format: int,
    pad: int | Sequence[int],
    stride: int | Sequence[int],
    dilation: int | Sequence[int],
    x_shape: Sequence[int],
    w_shape: Sequence[int],
    data_dtype: str,
    conv_dtype: str,
    groups: int = 1,
) -> list[int]:
    """The shape that a convolution gives.

    Parameters
    ----------
    tensor_format : int
        0 for NCHW, 1 for NHWC; three spatial axes in the same order.
    pad, stride, dilation : int or list of int
        For all spatial axes, or one for each.
    x_shape, w_shape : list of int
        Shapes of data and weights; weights have the channels where the data has them.
    data_dtype, conv_dtype : str
        Data types, which change no shape.
    groups : int
        The number of groups, which changes none either.
    """
    del data_dtype, conv_dtype, groups
    first, axes = _first_spatial_axis(tensor_format), len(x_shape) - 2
    pads, strides, dilations = (_each(value, axes) for value in (pad, stride, dilation))
    extents = [
        (int(x) + 2 * p - (int(w) - 1) * d - 1) // s + 1
        for x, w, p, s, d in zip(
            x_shape[first:][:axes], w_shape[first:][:axes], pads, strides, dilations, strict=True
        )
    ]
    batch, channels = int(x_shape[0]), int(w_shape[0])
    return [batch, channels, *extents] if first == 2 else [batch, *extents, channels]


def conv_dgrad_shape(
    tensor_format: int,
    pad: int | Sequence[int],
    stride: int | Sequence[int],
    dilation: int | Sequence[int],
    dy_shape: Sequence[int],
    w_shape: Sequence[int],
    output_padding: Sequence[int] = (0, 0),
    groups: int = 1,
) -> list[int]:
    """The shape of the data whose convolution has the shape ``dy_shape``; as `conv_output_shape`."""
    first = _first_spatial_axis(tensor_format)
    axes = len(dy_shape) - 2
    pads, strides, dilations = (_each(value, axes) for value in (pad, stride, dilation))
    extents = [
        (out - 1) * s - 2 * p + (window - 1) * d + 1 + more
        for out, s, p, window, d, more in zip(
            dy_shape[first:][:axes], strides, pads, w_shape[first:][:axes], dilations,
            output_padding, strict=True,
        )
    ]  # fmt: skip
    channels = w_shape[1] if first == 2 else w_shape[-1]
    batch, channels = int(dy_shape[0]), int(channels) * groups
    return [batch, channels, *extents] if first == 2 else [batch, *extents, channels]


def _first_spatial_axis(tensor_format: int) -> int:
    if tensor_format not in (0, 1):
        raise ValueError(f"cudnn requires the format 0, NCHW, or 1, NHWC, got {tensor_format}")
    return _LAYOUTS[tensor_format].index("H")


def _each(value: int | Sequence[int], count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value)


def _unavailable(name: str) -> Callable[..., NoReturn]:
    def reject(*_: Any, **__: Any) -> NoReturn:
        raise TVMError(f"tvm.contrib.cudnn.{name} is not in this release; {_INSTEAD}")

    reject.__name__ = reject.__qualname__ = name
    return reject


# programs name these inside of the operators that they declare
conv_forward = _unavailable("conv_forward")
conv_backward_data = _unavailable("conv_backward_data")
conv_backward_filter = _unavailable("conv_backward_filter")
conv_forward_find_algo = _unavailable("conv_forward_find_algo")
conv_backward_data_find_algo = _unavailable("conv_backward_data_find_algo")
conv_backward_filter_find_algo = _unavailable("conv_backward_filter_find_algo")
algo_to_index = _unavailable("algo_to_index")
softmax = _unavailable("softmax")
log_softmax = _unavailable("log_softmax")


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"tvm.contrib.cudnn.{name} is not in this release; {_INSTEAD}")

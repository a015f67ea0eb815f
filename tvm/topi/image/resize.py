"""Resizing images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.support.docstrings import described_by
from tvm.support.signatures import with_defaults

from .. import tag
from ..layout import axis_positions
from ..modules import sibling_attribute
from ..utils import cast_scalar, dims

COORDINATE_MODES = (
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip
# modes and roundings by which the nearest element of i is i // factor
REPEATING = {
    ("asymmetric", ""), ("asymmetric", "floor"),
    ("tf_half_pixel_for_nn", ""), ("tf_half_pixel_for_nn", "floor"),
    ("half_pixel", "round"), ("half_pixel", "round_prefer_ceil"),
    ("half_pixel", "round_prefer_floor"),
}  # fmt: skip


def source_position(
    index: Any,
    have: Any,
    want: Any,
    mode: str,
    dtype: str = "float32",
    region: tuple[Any, Any] = (0.0, 1.0),
) -> Any:
    """Where an output index lies in the input, as a float; `region` is for tf_crop_and_resize."""
    x = index.astype(dtype)
    if mode == "asymmetric":
        return x * _ratio(have, want, dtype)
    if mode == "align_corners":
        return x * _unless_one(want, lambda: _ratio(have - 1, want - 1, dtype), 0.0, dtype)
    if mode == "tf_half_pixel_for_nn":
        return (x + tir.const(0.5, dtype)) * _ratio(have, want, dtype)
    if mode == "tf_crop_and_resize":
        start, end = region
        room = cast_scalar(have - 1, dtype)
        middle = cast_scalar(0.5 * (start + end), dtype) * room
        first = cast_scalar(start, dtype) * room
        return _unless_one(
            want, lambda: first + x * (_ratio(end - start, want - 1, dtype) * room), middle, dtype
        )
    half = tir.const(0.5, dtype)
    centre = (x + half) * _ratio(have, want, dtype) - half
    if mode == "half_pixel":
        return centre
    if mode == "pytorch_half_pixel":
        return _unless_one(want, lambda: centre, 0.0, dtype)
    raise RuntimeValueError(
        f"resize requires a coordinate_transformation_mode of {', '.join(COORDINATE_MODES)}, "
        f"got {mode!r}"
    )


def _ratio(have: Any, want: Any, dtype: str) -> Any:
    """The quotient of two numbers, which may be known at run time only."""
    if isinstance(have, (int, float)) and isinstance(want, int):
        return tir.const(have / want, dtype)
    return cast_scalar(have, dtype) / cast_scalar(want, dtype)


def _unless_one(want: Any, value: Callable[[], Any], otherwise: Any, dtype: str) -> Any:
    """A value that has no meaning for an extent of 1."""
    other = cast_scalar(otherwise, dtype)
    if isinstance(want, int):
        return value() if want > 1 else other
    return tir.Select(want > 1, value(), other)


def nearest_index(position: Any, rounding: str, mode: str) -> Any:
    """The input index nearest to a position."""
    rounding = rounding or ("round" if mode == "align_corners" else "floor")
    epsilon = tir.const(1e-5, position.dtype)
    half = tir.const(0.5, position.dtype)
    if rounding == "floor":
        return tir.floor(position + epsilon).astype("int32")
    if rounding == "ceil":
        return tir.ceil(position - epsilon).astype("int32")
    if rounding in ("round", "round_prefer_ceil"):
        return tir.floor(position + half).astype("int32")
    return tir.ceil(position - half).astype("int32")  # round_prefer_floor


def cubic_weights(t: Any, alpha: float) -> list[Any]:
    """The weights of four neighbours at distance t behind the second."""
    one = tir.const(1.0, t.dtype)

    def near(d: Any) -> Any:
        return ((alpha + 2) * d - (alpha + 3)) * d * d + one

    def far(d: Any) -> Any:
        return ((alpha * d - 5 * alpha) * d + 8 * alpha) * d - 4 * alpha

    return [far(t + one), near(t), near(one - t), far(one - t + one)]


@dataclass(frozen=True, slots=True)
class Interpolation:
    """How values between the elements are found."""

    method: str = "linear"
    mode: str = "half_pixel"  # how output indices map to input positions
    rounding: str = ""  # of the nearest neighbour
    alpha: float = -0.5  # the coefficient of cubic interpolation
    exclude: bool = False  # leave elements outside out of cubic sums
    extrapolation: float = 0.0  # the value outside, for tf_crop_and_resize

    def repeats(self, have: Sequence[Any], want: Sequence[Any], at: Sequence[int]) -> bool:
        """Whether every element is repeated an integral number of times."""
        if self.method != "nearest_neighbor" or (self.mode, self.rounding) not in REPEATING:
            return False
        pairs = [(have[axis], extent) for axis, extent in zip(at, want, strict=True)]
        return all(isinstance(h, int) and isinstance(w, int) and h and w % h == 0 for h, w in pairs)

    def shares_rows(self, have: Sequence[Any], want: Sequence[Any], at: Sequence[int]) -> bool:
        """Whether interpolating full rows between rows first saves work along them."""
        last = len(have) - 1
        if self.method == "nearest_neighbor" or len(at) < 2 or at[-1] != last:
            return False
        row, wanted = have[last], want[-1]
        return isinstance(row, int) and isinstance(wanted, int) and row <= 2 * wanted


def resize2d(
    data: te.Tensor,
    roi: Sequence[Any] | None,
    size: Sequence[Any],
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: Sequence[Any] | None = None,
) -> te.Tensor:
    """Resize two axes to a size.

    Parameters
    ----------
    data : te.Tensor
        The images.
    roi : sequence of float, optional
        The region that "tf_crop_and_resize" shows, in parts of the image: the starts along each
        axis, then the ends.
    size : sequence of int
        The new extents.
    layout : str
        The layout, blocked channels included.
    method : str
        "nearest_neighbor", "linear" or "cubic".
    coordinate_transformation_mode, rounding_method : str
        How output indices map to input positions, and those to the nearest element.
    bicubic_alpha : float
        The coefficient of cubic interpolation.
    bicubic_exclude : int
        Not 0: elements outside have no part in cubic sums.
    extrapolation_value : float
        The value outside of the image, for "tf_crop_and_resize".
    out_dtype : str, optional
        The dtype of the result, the data's by default.
    output_shape : sequence of int, optional
        The new extents, in place of `size`.
    """
    how = Interpolation(
        method, coordinate_transformation_mode, rounding_method, bicubic_alpha,
        bool(bicubic_exclude), extrapolation_value,
    )  # fmt: skip
    return _resize(data, roi, output_shape or size, layout, how, out_dtype)


@with_defaults(resize2d, layout="NCW")
def resize1d() -> None:
    """Resize one axis to a size; parameters as in `resize2d`."""


@with_defaults(resize2d, layout="NCDHW")
def resize3d() -> None:
    """Resize three axes to a size; parameters as in `resize2d`."""


def _resize(
    data: te.Tensor,
    roi: Sequence[Any] | None,
    size: Sequence[int],
    layout: str,
    how: Interpolation,
    out_dtype: str | None,
) -> te.Tensor:
    extents, want = dims(data.shape), dims(size)
    rank = len(want)
    at = axis_positions(layout, "DHW"[-rank:])
    shape = list(extents)
    for axis, extent in zip(at, want, strict=True):
        shape[axis] = extent
    whole = (0.0,) * rank + (1.0,) * rank
    bounds = [float(v) if isinstance(v, Real) else v for v in roi or whole]
    crops = how.mode == "tf_crop_and_resize"
    dtype = "float64" if data.dtype == "float64" else "float32"

    def positions_of(*i: Any) -> list[Any]:
        return [
            source_position(
                i[axis], extents[axis], want[k], how.mode, dtype, (bounds[k], bounds[k + rank])
            )
            for k, axis in enumerate(at)
        ]

    done, source = 0, data
    if how.shares_rows(extents, want, at):
        done = len(at) - 1
        source = te.compute(
            [*shape[:-1], extents[-1]],
            lambda *i: interpolate(data, i, at[:done], positions_of(*i)[:done], how),
            name="rows",
            tag=tag.SHARED_ROWS,
        )

    def element(*i: Any) -> Any:
        if how.repeats(extents, want, at):
            where = list(i)
            for axis, extent in zip(at, want, strict=True):
                where[axis] = tir.indexdiv(i[axis], extent // extents[axis])
            return data(*where).astype(out_dtype or data.dtype)
        positions = positions_of(*i)
        value = interpolate(source, i, at[done:], positions[done:], how)
        value = value.astype(out_dtype or data.dtype)
        if not crops:
            return value
        outside = [
            tir.any(p < 0, p > extents[axis] - 1) for p, axis in zip(positions, at, strict=True)
        ]
        return tir.Select(tir.any(*outside), tir.const(how.extrapolation, value.dtype), value)

    return te.compute(shape, element, name="resize", tag=tag.INJECTIVE)


def interpolate(
    data: te.Tensor,
    indices: Sequence[Any],
    at: Sequence[int],
    positions: Sequence[Any],
    how: Interpolation,
) -> Any:
    """The value at fractional positions along the axes `at`; elements outside repeat the edge."""
    extents = dims(data.shape)
    along = [
        _TAPS[how.method](position, extents[axis], how)
        for axis, position in zip(at, positions, strict=True)
    ]
    total: Any = None
    for taps in product(*along):
        where = list(indices)
        for axis, (index, _) in zip(at, taps, strict=True):
            where[axis] = tir.max(tir.min(index, extents[axis] - 1), 0)
        value = data(*where)
        for _, weight in taps:
            value = value if weight is None else value.astype(weight.dtype) * weight
        total = value if total is None else total + value
    return total


Taps = list[tuple[Any, Any]]


def _nearest(position: Any, extent: int, how: Interpolation) -> Taps:
    return [(nearest_index(position, how.rounding, how.mode), None)]


def _linear(position: Any, extent: int, how: Interpolation) -> Taps:
    low = tir.floor(position)
    t = position - low
    index = low.astype("int32")
    return [(index, tir.const(1.0, t.dtype) - t), (index + 1, t)]


def _cubic(position: Any, extent: int, how: Interpolation) -> Taps:
    low = tir.floor(position)
    index = low.astype("int32")
    weights = cubic_weights(position - low, how.alpha)
    if not how.exclude:
        return [(index + k - 1, weight) for k, weight in enumerate(weights)]
    positions = [index + k - 1 for k in range(4)]
    kept = [
        tir.Select(tir.all(p >= 0, p < extent), w, tir.const(0.0, w.dtype))
        for p, w in zip(positions, weights, strict=True)
    ]
    total = kept[0] + kept[1] + kept[2] + kept[3]
    return [(p, w / total) for p, w in zip(positions, kept, strict=True)]


_TAPS: dict[str, Callable[[Any, int, Interpolation], Taps]] = {
    "nearest_neighbor": _nearest,
    "linear": _linear,
    "cubic": _cubic,
}


@described_by(resize2d)
def crop_and_resize(
    data: te.Tensor,
    boxes: te.Tensor,
    box_indices: te.Tensor,
    crop_size: Sequence[int],
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float | None = None,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Cut boxes out of images and resize each to one size.

    Parameters
    ----------
    boxes : te.Tensor
        (boxes, 4): top, left, bottom and right in parts of the image.
    box_indices : te.Tensor
        (boxes,): the image of each box.
    crop_size : sequence of int
        The height and width of the results.
    layout : str
        "NCHW" or "NHWC".
    method : str
        "bilinear" or "nearest_neighbor".
    extrapolation_value : float, optional
        The value outside of the image, 0 by default.
    """
    methods = {"bilinear": "linear", "nearest_neighbor": "nearest_neighbor"}
    if method not in methods:
        raise RuntimeValueError(
            f"crop_and_resize requires a method of {', '.join(methods)}, got {method!r}"
        )
    at, batch = axis_positions(layout, "HW"), layout.index("N")
    extents, want = dims(data.shape), dims(crop_size)
    how = Interpolation(methods[method], rounding="round")
    shape = list(extents)
    shape[batch] = dims(boxes.shape)[0]
    for axis, extent in zip(at, want, strict=True):
        shape[axis] = extent

    def position(index: Any, box: Any, k: int) -> Any:
        low, high = boxes(box, k), boxes(box, k + 2)
        room = cast_scalar(extents[at[k]] - 1, low.dtype)
        if want[k] == 1:
            return (low + high) * tir.const(0.5, low.dtype) * room
        step = (high - low) * room / tir.const(want[k] - 1, low.dtype)
        return low * room + index.astype(low.dtype) * step

    def element(*i: Any) -> Any:
        box = i[batch]
        where = list(i)
        where[batch] = box_indices(box)
        positions = [position(i[axis], box, k) for k, axis in enumerate(at)]
        value = interpolate(data, where, at, positions, how).astype(out_dtype or data.dtype)
        outside = [
            tir.any(p < 0, p > extents[axis] - 1) for p, axis in zip(positions, at, strict=True)
        ]
        beyond = tir.const(extrapolation_value or 0.0, value.dtype)
        return tir.if_then_else(tir.any(*outside), beyond, value)

    return te.compute(shape, element, name="crop_and_resize", tag=tag.INJECTIVE)


__getattr__ = sibling_attribute(__name__)  # the pieces in `pixels`

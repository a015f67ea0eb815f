"""The pieces of resizing as functions: elements by axis, positions and the nearest of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from ..utils import dims
from .resize import nearest_index, source_position

# what stands for the axes of a layout: a batch, channels, space, and blocks of the first two
Places = tuple[Any, ...]


def can_convert_multiply_to_intdiv(origin_size: Any, scaled_size: Any) -> bool:
    """Whether an extent is a whole multiple of another, both known."""
    origin, scaled = dims((origin_size, scaled_size))
    return isinstance(origin, int) and isinstance(scaled, int) and origin > 0 and scaled % origin == 0  # fmt: skip


def _split(indices: Sequence[Any], layout: str, spatial: str) -> Places:
    """(n, c, space..., block of c, inner n, inner c); what the layout has not is None."""
    names = [letter for letter in layout if letter.isalpha()]
    if len(names) != len(indices) or not set("NC" + spatial) <= set(names):
        raise RuntimeValueError(f"layout {layout!r} of {len(names)} axes requires as many indices, got {len(indices)}")  # fmt: skip
    at = dict(zip(names, indices, strict=True))
    is_packed = "n" in at
    block = None if is_packed else at.get("c")
    inner = (at["n"], at.get("c")) if is_packed else (0, 0)
    return (at["N"], at["C"], *[at[axis] for axis in spatial], block, *inner)


def get_1d_indices(indices: Sequence[Any], layout: str = "NCW") -> Places:
    """An index of each axis as (n, c, x, block of channels, inner batch, inner channel)."""
    return _split(indices, layout, "W")


def get_2d_indices(indices: Sequence[Any], layout: str = "NCHW") -> Places:
    """An index of each axis as (n, c, y, x, block of channels, inner batch, inner channel)."""
    return _split(indices, layout, "HW")


def get_3d_indices(indices: Sequence[Any], layout: str = "NCDHW") -> Places:
    """An index of each axis as (n, c, z, y, x, block of channels)."""
    return _split(indices, layout, "DHW")[:6]


def _pixel(
    data: te.Tensor, layout: str, extents: dict[str, Any], at: dict[str, Any], inner: dict[str, Any]
) -> Any:
    for axis, extent in extents.items():
        at[axis] = tir.max(tir.min(at[axis], extent - 1), 0)
    named = at | inner
    return data(*[named[letter] for letter in layout if letter.isalpha()])


def get_1d_pixel(
    data: te.Tensor, layout: str, image_width: Any, n: Any, c: Any, x: Any, cc: Any, ib: Any,
    ic: Any,
) -> Any:  # fmt: skip
    """The element at a position; positions outside give the edge's."""
    inner = {"n": ib, "c": ic if "n" in layout else cc}
    return _pixel(data, layout, {"W": image_width}, {"N": n, "C": c, "W": x}, inner)


def get_2d_pixel(
    data: te.Tensor, layout: str, image_height: Any, image_width: Any, n: Any, c: Any, y: Any,
    x: Any, cc: Any, ib: Any, ic: Any,
) -> Any:  # fmt: skip
    """The element at a position; positions outside give the edge's."""
    inner = {"n": ib, "c": ic if "n" in layout else cc}
    extents = {"H": image_height, "W": image_width}
    return _pixel(data, layout, extents, {"N": n, "C": c, "H": y, "W": x}, inner)


def get_3d_pixel(
    data: te.Tensor, layout: str, image_depth: Any, image_height: Any, image_width: Any, n: Any,
    c: Any, z: Any, y: Any, x: Any, cc: Any,
) -> Any:  # fmt: skip
    """The element at a position; positions outside give the edge's."""
    extents = {"D": image_depth, "H": image_height, "W": image_width}
    return _pixel(data, layout, extents, {"N": n, "C": c, "D": z, "H": y, "W": x}, {"c": cc})


def get_inx(
    x: Any,
    image_width: Any,
    target_width: Any,
    coordinate_transformation_mode: str,
    start_x: float = 0,
    end_x: float = -1,
    use_int_div: bool = False,
) -> Any:
    """Where an index of the result lies in the source.

    Parameters
    ----------
    x : PrimExpr
        The index.
    image_width, target_width : int or PrimExpr
        The source's extent and the result's.
    coordinate_transformation_mode : str
        As in `resize2d`.
    start_x, end_x : float
        The region's ends, for "tf_crop_and_resize".
    use_int_div : bool
        Divide integers, where the mode is "asymmetric" and the extents divide.
    """
    have, want = dims((image_width, target_width))
    if use_int_div and coordinate_transformation_mode == "asymmetric":
        return tir.indexdiv(x, want // have)
    return source_position(x, have, want, coordinate_transformation_mode, region=(start_x, end_x))


def get_closest_index(
    in_x: Any, rounding_method: str, boxes: Any, use_int_div: bool = False
) -> Any:
    """The index of the element nearest to a position; boxes are cut by rounding halves up.

    Parameters
    ----------
    in_x : PrimExpr
        The position, an index if it was found by dividing integers.
    rounding_method : str
        As in `resize2d`.
    boxes : te.Tensor, optional
        The boxes of `crop_and_resize`.
    use_int_div : bool
        Whether the position is an index.
    """
    if use_int_div:
        return in_x.astype("int32")
    return nearest_index(in_x, rounding_method if boxes is None else "round", "")

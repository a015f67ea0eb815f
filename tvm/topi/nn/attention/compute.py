"""Attention: values summed with the softmax of query-key products as weights.

The exponentials are summed up first and the result is divided once a row. Rows and columns that
fill the last tiles are computed from the last row, and count nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import gcd
from typing import Any

from tvm import te, tir

from ...utils import ceil_div, dims, rounded_up

OUTPUT = "attention"


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """Tiles in registers, and the rows whose scores stay in a cache."""

    rows: int  # of both products' tiles
    columns: int  # of the scores' tile: full vectors
    lanes: int  # of the scores
    value_columns: int  # of the result's tile: full vectors
    value_lanes: int
    block: int  # tiles of rows


def attention(
    query: te.Tensor,
    key: te.Tensor,
    value: te.Tensor,
    bias: te.Tensor | None = None,
    keep: te.Tensor | None = None,
    scale: float = 1.0,
    fill: float = 0.0,
    heads: int = 1,
    merge_heads: bool = False,
    config: AttentionConfig | None = None,
) -> te.Tensor:
    """softmax(where(keep, query @ key.T * scale, fill) + bias) @ value

    Parameters
    ----------
    query, key, value : te.Tensor
        Of shapes (batch * heads, queries, depth), (batch * heads, keys, depth) and
        (batch * heads, keys, width).
    bias : te.Tensor, optional
        Added to the scores; its shape broadcasts to (batch, heads, queries, keys).
    keep : te.Tensor, optional
        Where false, `fill` takes the score's place; its shape broadcasts as the bias'.
    scale, fill : float
        A factor, and what takes the place of scores.
    heads : int
        How many neighbours along the first axis belong to one example.
    merge_heads : bool
        Whether the result has the shape (batch, queries, heads * width).
    config : AttentionConfig, optional
        The tiles; single elements by default.
    """
    count, queries, depth = dims(query.shape)
    keys, width = dims(value.shape)[1:]
    config = config or AttentionConfig(1, 1, 1, 1, 1, 1)
    rows = rounded_up(queries, config.rows)
    columns = rounded_up(keys, config.columns)
    panels = _key_panels(key, config.columns)
    padded = ceil_div(width, config.value_columns) * config.value_columns
    panel = _value_panel(value, padded)
    d = te.reduce_axis((0, depth), name="d")
    product = te.compute(
        (count, rows, columns),
        lambda n, i, j: te.sum(
            query(n, _at_most(i, queries, rows), d.var)
            * panels(n, tir.indexdiv(j, config.columns), d.var, tir.indexmod(j, config.columns)),
            axis=d,
        ),
        name="T_attention_product",
    )

    def score(n: Any, i: Any, j: Any) -> Any:
        at = (tir.indexdiv(n, heads), tir.indexmod(n, heads), _at_most(i, queries, rows), j)
        found = product(n, i, j)
        found = found if scale == 1.0 else found * tir.const(scale, found.dtype)
        if keep is not None:
            found = tir.Select(_element(keep, at), found, tir.const(fill, found.dtype))
        found = found if bias is None else found + _element(bias, at)
        return found if _is_exactly(keys, columns) else _or_nothing(found, j < keys)

    scores = te.compute((count, rows, columns), score, name="T_attention_scores")
    exponentials, total = _exponentials(scores, config)
    result = _weighted_sum(exponentials, panel)
    shape, position = _result_shape((count, queries, width), heads, merge_heads)

    def element(*i: Any) -> Any:
        n, y, x = position(*i)
        if padded > width:
            # always the column itself: but tiles reach to the end of the zeros
            x = tir.Select(x < width, x, padded - 1)
        return result(n, y, x) * (tir.const(1.0, result.dtype) / total(n, y))

    attrs = {**asdict(config), "heads": heads, "width": width, "merged": int(merge_heads)}
    return te.compute(shape, element, name="T_attention", tag=OUTPUT, attrs=attrs)


def _key_panels(key: te.Tensor, width: int) -> te.Tensor:
    """Keys side by side, [head, panel, depth, key]; the last one fills its panel."""
    count, keys, depth = dims(key.shape)
    panels = ceil_div(keys, width)

    def element(n: Any, panel: Any, d: Any, j: Any) -> Any:
        return key(n, _at_most(panel * width + j, keys, panels * width), d)

    return te.compute((count, panels, depth, width), element, name="T_attention_key")


def _value_panel(value: te.Tensor, columns: int) -> te.Tensor:
    """Values, zeros beyond the last column."""
    count, keys, width = dims(value.shape)

    def element(n: Any, j: Any, x: Any) -> Any:
        if columns == width:
            return value(n, j, x)
        return tir.if_then_else(x < width, value(n, j, x), tir.const(0, value.dtype))

    return te.compute((count, keys, columns), element, name="T_attention_value")


def _at_most(index: Any, extent: Any, padded: Any) -> Any:
    return index if _is_exactly(extent, padded) else tir.min(index, extent - 1)


def _is_exactly(extent: Any, value: Any) -> bool:
    """Whether an extent is a number, and that one."""
    return isinstance(extent, int) and isinstance(value, int) and extent == value


def _element(tensor: te.Tensor, at: Sequence[Any]) -> Any:
    """An element at the last of the indices, 0 along axes of extent 1."""
    shape = dims(tensor.shape)
    indices = at[len(at) - len(shape) :]
    return tensor(
        *[0 if _is_exactly(extent, 1) else i for extent, i in zip(shape, indices, strict=True)]
    )


def _or_nothing(score: Any, condition: Any) -> Any:
    """The score, or one whose exponential is zero."""
    return tir.if_then_else(condition, score, tir.const(float("-inf"), score.dtype))


def _exponentials(scores: te.Tensor, config: AttentionConfig) -> tuple[te.Tensor, te.Tensor]:
    """exp(score - the row's largest), and the sums of the rows."""
    largest = _along_row(scores, te.max, config, "T_attention_largest")
    exponentials = te.compute(
        scores.shape,
        lambda n, i, j: tir.exp(scores(n, i, j) - largest(n, i)),
        name="T_attention_exp",
    )
    return exponentials, _along_row(exponentials, te.sum, config, "T_attention_total")


def _along_row(x: te.Tensor, reduce: Any, config: AttentionConfig, name: str) -> te.Tensor:
    """A reduction of rows, first to a few vectors beside one another, then to ever fewer quarters."""
    lanes = config.lanes
    side = _side_by_side(dims(x.shape)[2], config)
    if side > 1:
        x = _to_lanes(x, reduce, side * lanes, f"{name}_{side * lanes}")
    while lanes > 1:
        x = _to_lanes(x, reduce, lanes, f"{name}_{lanes}")
        lanes //= 4
    count, rows, columns = dims(x.shape)
    k = te.reduce_axis((0, columns), name="k")
    return te.compute((count, rows), lambda n, i: reduce(x(n, i, k.var), axis=k), name=name)


def _side_by_side(columns: Any, config: AttentionConfig) -> int:
    """Vectors of a row that are reduced at the same time; an open row has those of a tile."""
    if config.lanes == 1:
        return 1
    if not isinstance(columns, int):
        return gcd(config.columns // config.lanes, 4)
    wide = 4 * config.lanes
    return 4 if columns % wide == 0 and columns > wide else 1


def _to_lanes(x: te.Tensor, reduce: Any, lanes: int, name: str) -> te.Tensor:
    count, rows, columns = dims(x.shape)
    k = te.reduce_axis((0, columns // lanes), name="k")
    return te.compute(
        (count, rows, lanes),
        lambda n, i, j: reduce(x(n, i, k.var * lanes + j), axis=k),
        name=name,
    )


def _weighted_sum(weights: te.Tensor, panel: te.Tensor) -> te.Tensor:
    count, rows, _ = dims(weights.shape)
    _, keys, width = dims(panel.shape)
    j = te.reduce_axis((0, keys), name="j")
    return te.compute(
        (count, rows, width),
        lambda n, i, x: te.sum(weights(n, i, j.var) * panel(n, j.var, x), axis=j),
        name="T_attention_sum",
    )


def _result_shape(
    shape: tuple[int, int, int], heads: int, is_merged: bool
) -> tuple[tuple[int, int, int], Any]:
    """The output's shape, and the position in (heads of all examples, queries, width) of an element."""
    count, queries, width = shape
    if not is_merged:
        return shape, lambda n, y, x: (n, y, x)
    return (count // heads, queries, heads * width), lambda b, y, x: (
        b * heads + tir.indexdiv(x, width),
        y,
        tir.indexmod(x, width),
    )

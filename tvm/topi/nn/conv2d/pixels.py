"""The pixels of an image whose height or width only the run knows, as one axis.

Tiles of them are full whatever the width is. Those beyond the last one see the same data as it, and
are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import te, tir

PIXELS_TAG = "conv2d_pixels"


@dataclass(frozen=True, slots=True)
class Pixels:
    """Rows and columns of an output, and how its number of pixels is rounded up to full tiles."""

    rows: Any
    columns: Any
    padded_count: Callable[[Any], Any] | None

    @property
    def padded(self) -> Any:
        """The pixels that are computed."""
        count = self.rows * self.columns
        return count if self.padded_count is None else self.padded_count(count)

    def place(self, index: Any) -> tuple[Any, Any]:
        """The row and the column of a pixel."""
        count = self.rows * self.columns
        # likely: where tiles are full, the pixels of a tile are known to be neighbours
        pixel = tir.Select(tir.likely(index < count), index, count - 1)
        return tir.indexdiv(pixel, self.columns), tir.indexmod(pixel, self.columns)

    def image(self, sums: te.Tensor) -> te.Tensor:
        """The pixels (n, channels, pixels, block) in rows and columns."""
        n, chunks, _, block = sums.shape
        return te.compute(
            (n, chunks, self.rows, self.columns, block),
            lambda b, oco, y, x, oci: sums(b, oco, y * self.columns + x, oci),
            name="conv2d_NCHWc",
            tag="injective,pixels",
        )

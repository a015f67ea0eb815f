"""Cases of the operators on sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relay

from .cases import RNG, Array, Case, floats


def blocks(dense: Array, height: int = 1, width: int = 1) -> tuple[Array, Array, Array]:
    """The data, indices and indptr of a matrix by rows (of blocks)."""
    rows, columns = dense.shape[0] // height, dense.shape[1] // width
    tiles = dense.reshape(rows, height, columns, width).transpose(0, 2, 1, 3)
    is_kept = tiles.any((2, 3))
    data = tiles[is_kept]
    indptr = np.concatenate([[0], is_kept.sum(1).cumsum()]).astype("int32")
    indices = np.nonzero(is_kept)[1].astype("int32")
    return (data.reshape(-1) if height == width == 1 else data), indices, indptr


def sparse(rows: int, columns: int, height: int = 1, width: int = 1) -> Array:
    kept = RNG.random((rows // height, columns // width)) < 0.3
    kept[0, 0] = True
    return floats(rows, columns) * np.kron(kept, np.ones((height, width))).astype("float32")


def _conv(images: Array, weight: Array, extent: int) -> Array:
    """`weight` is (outputs, y, x, channels), images are NHWC."""
    before = (extent - 1) // 2
    padded = np.pad(images, ((0, 0), (before, before), (before, before), (0, 0)))
    _, height, width, _ = images.shape
    shifted = [
        [padded[:, y : y + height, x : x + width] for x in range(extent)] for y in range(extent)
    ]
    return np.einsum("yxnhwc,oyxc->nhwo", np.array(shifted), weight)


def sparse_cases() -> list[Case]:
    nn = relay.nn
    x, square = floats(5, 24), sparse(9, 9)
    plain, tall = sparse(16, 24), sparse(16, 24, 4, 2)
    images = floats(2, 5, 6, 8)
    first = images.transpose(0, 3, 1, 2).copy()
    one, three, turned = sparse(16, 8, 4, 1), sparse(16, 72, 8, 2), sparse(16, 72, 16, 1)
    small = one.reshape(16, 1, 1, 8)
    large = three.reshape(16, 3, 3, 8)
    moved = turned.reshape(16, 8, 3, 3).transpose(0, 2, 3, 1)
    wide = [part.astype("int64") if part.dtype == "int32" else part for part in blocks(plain)]
    table: list[tuple[str, Any, tuple[Any, ...], Any]] = [
        ("nn.sparse_dense", lambda a, *m: nn.sparse_dense(a, m), (x, *blocks(plain)), lambda a, *m: a @ plain.T),
        ("nn.sparse_dense", lambda a, *m: nn.sparse_dense(a, m), (x, *wide), lambda a, *m: a @ plain.T),
        ("nn.sparse_dense", lambda a, *m: nn.sparse_dense(a, m), (x, *blocks(tall, 4, 2)), lambda a, *m: a @ tall.T),
        ("nn.sparse_dense", lambda a, *m: nn.sparse_dense(a, m, True), (x, *blocks(tall, 4, 2)), lambda a, *m: tall @ a.T),
        ("nn.sparse_add", lambda a, *m: nn.sparse_add(a, m), (floats(16, 24), *blocks(plain)), lambda a, *m: a + plain),
        ("nn.sparse_transpose", lambda *m: nn.sparse_transpose(m).astuple(), blocks(square), lambda *m: list(blocks(square.T))),
        ("nn.sparse_conv2d", lambda a, *m: nn.sparse_conv2d(a, m), (images, *blocks(one, 4, 1)), lambda a, *m: _conv(a, small, 1)),
        ("nn.sparse_conv2d", lambda a, *m: nn.sparse_conv2d(a, m, kernel_size=3), (images, *blocks(three, 8, 2)), lambda a, *m: _conv(a, large, 3)),
        ("nn.sparse_conv2d", lambda a, *m: nn.sparse_conv2d(a, m, "NCHW", (3, 3)), (first, *blocks(turned, 16, 1)), lambda a, *m: _conv(images, moved, 3).transpose(0, 3, 1, 2)),
    ]  # fmt: skip
    return [Case(name, build, inputs, expected, 1e-4) for name, build, inputs, expected in table]

"""What tables of tensor intrinsics share: their registration, tiles of registers, and dot products."""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from typing import Any

from tvm.script import tir as T
from tvm.tir.function import PrimFunc, TensorIntrin

# elements that tiles of these types begin at multiples of
OFFSET_FACTOR = 16


def registered(name: str, intrin: tuple[PrimFunc, PrimFunc]) -> str:
    """The name under which an intrinsic, what it does and how, is now registered."""
    TensorIntrin.register(name, *intrin, override=True)
    return name


def match_tile(handle: Any, shape: Any, dtype: str, scope: str, strides: Any = None) -> Any:
    """The buffer of a handle that is a tile for matrix units."""
    return T.match_buffer(
        handle, shape, dtype, strides=strides, scope=scope, align=64, offset_factor=OFFSET_FACTOR
    )


def converted(value: Any, dtype: str) -> Any:
    """The value as ``dtype``; itself if it is of that type, as programs write it."""
    return value if value.dtype == dtype else T.cast(value, dtype)


def dot_product_desc(
    lanes: int, depth: int, dtypes: tuple[str, str, str], scope: str = "global"
) -> PrimFunc:
    """Dot products of one vector with the rows of a matrix, each added to an element of a third one.

    Parameters
    ----------
    lanes : int
        How many dot products.
    depth : int
        Of how many elements.
    dtypes : tuple of str
        Of the vector, the matrix and the sums.
    scope : str
        Where all three are.
    """
    dtype_a, dtype_b, dtype_c = dtypes

    @T.prim_func
    def dot_product(
        A: T.Buffer((depth,), dtype_a, offset_factor=1, scope=scope),
        B: T.Buffer((lanes, depth), dtype_b, offset_factor=1, scope=scope),
        C: T.Buffer((lanes,), dtype_c, offset_factor=1, scope=scope),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:lanes], A[0:depth], B[0:lanes, 0:depth])
            T.writes(C[0:lanes])
            for i in T.serial(0, lanes):
                for k in T.serial(0, depth):
                    with T.block("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        C[vi] = C[vi] + converted(A[vk], dtype_c) * converted(B[vi, vk], dtype_c)

    return dot_product

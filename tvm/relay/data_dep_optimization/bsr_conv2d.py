"""Convolutions with sparse weights, by rows of blocks."""

from __future__ import annotations

from collections.abc import MutableMapping

from tvm.relay.analysis.sparse_conv2d import process_params
from tvm.relay.function import Function
from tvm.relay.transform import Conv2dToSparse
from tvm.runtime.ndarray import NDArray

from .utils import _run_opt_pass


def convert(
    func: Function,
    params: MutableMapping[str, NDArray],
    blocksize: tuple[int, int],
    sparsity_threshold: float,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> tuple[Function, MutableMapping[str, NDArray]]:
    """The function with sparse convolutions, and the parameters in sparse form.

    Parameters
    ----------
    func : a function whose weights are parameters.
    params : their values; changed.
    blocksize : the rows and columns of a block.
    sparsity_threshold : the least share of zeros for which a weight is taken.
    layout, kernel_size : which convolutions are converted.
    """
    found = process_params(func, params, blocksize, sparsity_threshold, layout, kernel_size)
    new = _run_opt_pass(
        func, Conv2dToSparse(found.weight_name, found.weight_shape, layout, kernel_size)
    )
    return new, params


def convert2(
    func: Function,
    params: MutableMapping[str, NDArray],
    blocksize: tuple[int, int],
    sparsity_threshold: float,
    layout: str,
    kernel_size: int,
) -> tuple[Function, MutableMapping[str, NDArray]]:
    """`convert` (classic name of the version for larger windows)."""
    return convert(func, params, blocksize, sparsity_threshold, layout, kernel_size)

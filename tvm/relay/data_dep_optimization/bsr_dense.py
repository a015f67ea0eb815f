"""Dense layers with sparse weights, by rows of blocks."""

from __future__ import annotations

from collections.abc import MutableMapping

from tvm.relay.analysis.sparse_dense import process_params
from tvm.relay.function import Function
from tvm.relay.transform import DenseToSparse
from tvm.runtime.ndarray import NDArray

from .utils import _run_opt_pass


def convert(
    func: Function,
    params: MutableMapping[str, NDArray],
    blocksize: tuple[int, int],
    sparsity_threshold: float,
) -> tuple[Function, MutableMapping[str, NDArray]]:
    """The function with sparse products, and the parameters in sparse form.

    Parameters
    ----------
    func : a function whose weights are parameters.
    params : their values; changed.
    blocksize : the rows and columns of a block.
    sparsity_threshold : the least share of zeros for which a weight is taken.
    """
    found = process_params(func, params, blocksize, sparsity_threshold)
    new = _run_opt_pass(func, DenseToSparse(found.weight_name, found.weight_shape))
    return new, params

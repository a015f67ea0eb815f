"""Networks with sparse weights, drawn at random where there are none: for measuring sparse kernels."""

from __future__ import annotations

from collections.abc import MutableMapping

import tvm.runtime.ndarray as nd
from tvm.ir.module import IRModule
from tvm.relay.analysis.sparse import dense_weights
from tvm.relay.function import Function
from tvm.runtime.ndarray import NDArray
from tvm.topi.sparse.utils import random_bsr_matrix

from . import bsr_dense, simplify_fc_transpose

_LEAST_SHARE = 0.8  # of zeros in a weight that becomes sparse


def random_sparse_dense_params(
    func: Function, params: MutableMapping[str, NDArray], density: float, BS_R: int, BS_C: int
) -> dict[str, NDArray]:
    """The parameters, with random sparse weights of dense layers.

    Parameters
    ----------
    func : relay.Function
        The network.
    params : dict of str to NDArray
        Its parameters, which stay as they are.
    density : float
        The share of the elements that are not zero.
    BS_R, BS_C : int
        The rows and columns of a block, which divide those of each weight that is replaced.
    """
    found = dict(params)
    for name in dense_weights(func):
        weight = found.get(name)
        if weight is None:
            continue
        rows, columns = weight.shape
        if rows % BS_R == 0 and columns % BS_C == 0:
            sparse = random_bsr_matrix(rows, columns, BS_R, BS_C, density, weight.dtype)
            found[name] = nd.array(sparse.todense())
    return found


def convert_model_dense_to_sparse(
    mod: IRModule,
    params: MutableMapping[str, NDArray],
    random_params: bool = False,
    bs_r: int = 1,
    sparsity: float = 0.85,
) -> tuple[IRModule, MutableMapping[str, NDArray]]:
    """The network with sparse products where weights of dense layers have many zeros.

    Parameters
    ----------
    mod : IRModule
        The network.
    params : dict of str to NDArray
        Its parameters; changed.
    random_params : bool
        Whether to draw weights with many zeros, to measure what these would give.
    bs_r : int
        The rows of a block; it has one column.
    sparsity : float
        The share of zeros of weights that are drawn.

    Returns
    -------
    IRModule, dict of str to NDArray
        The network and its parameters.
    """
    func, params = simplify_fc_transpose.convert(mod["main"], params)
    if random_params:
        params = random_sparse_dense_params(func, params, 1.0 - sparsity, bs_r, 1)
    func, params = bsr_dense.convert(func, params, (bs_r, 1), _LEAST_SHARE)
    return IRModule.from_expr(func), params

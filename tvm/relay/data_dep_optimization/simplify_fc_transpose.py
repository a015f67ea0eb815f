"""Weights that are transposed before a dense layer, transposed once and for all."""

from __future__ import annotations

from collections.abc import MutableMapping

import tvm.runtime.ndarray as nd
from tvm.relay.analysis.fc_transpose import search_fc_transpose
from tvm.relay.function import Function
from tvm.relay.transform import SimplifyFCTranspose
from tvm.runtime.ndarray import NDArray

from .utils import _run_opt_pass


def convert(
    func: Function, params: MutableMapping[str, NDArray]
) -> tuple[Function, MutableMapping[str, NDArray]]:
    """The function without the transposes, and the parameters with the transposed weights."""
    names = [name for name in search_fc_transpose(func) if name in params]
    new = _run_opt_pass(func, SimplifyFCTranspose(names))
    left = {p.name_hint for p in new.params}
    for name in names:
        weight = params[name]
        params[f"{name}.T"] = nd.array(weight.numpy().T.copy())
        if name not in left:
            del params[name]
    return new, params

"""Networks made sparse to be measured: tvm.topi.sparse.utils.convert_model_dense_to_sparse."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.op.nn import _make
from tvm.topi.sparse.utils import convert_model_dense_to_sparse


def network() -> tuple[tvm.IRModule, dict[str, tvm.nd.NDArray]]:
    x, w = relay.var("x", shape=(4, 32)), relay.var("w", shape=(64, 32))
    weight = np.random.default_rng(0).normal(size=(64, 32)).astype("float32")
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    return tvm.IRModule.from_expr(func), {"w": tvm.nd.array(weight)}


@pytest.mark.parametrize("rows", [1, 16])
def test_random_weights_are_sparse(rows: int) -> None:
    mod, params = network()
    sparse, values = convert_model_dense_to_sparse(mod, params, random_params=True, bs_r=rows)
    assert "nn.sparse_dense" in sparse.astext(show_meta_data=False)
    assert values["w.data"].shape[1:] == (rows, 1)
    # float32 as the network computed with
    lib = relay.build(sparse, "llvm", params=values)
    module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.ones((4, 32), "float32"))
    assert module.get_output(0).shape == (4, 64)


def test_dense_weights_stay() -> None:
    mod, params = network()
    found, values = convert_model_dense_to_sparse(mod, params)
    assert "sparse" not in found.astext(show_meta_data=False) and set(values) == {"w"}


def test_operators_below_their_functions() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3, 4))
    call = _make.matmul(x, y, None, "", False, False)
    assert call.op.name == "nn.matmul"
    with pytest.raises(AttributeError):
        _make.no_such_operator

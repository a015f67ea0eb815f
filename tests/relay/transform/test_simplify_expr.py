from __future__ import annotations

from tvm import relay
from tvm.relay.transform import SimplifyExpr

from .common import assert_unchanged


def test_dense_layer_flattened_to_a_vector_stays() -> None:
    x, w = relay.var("x", shape=(1, 2, 3)), relay.var("w", shape=(4, 3))
    layer = relay.nn.dense(relay.reshape(x, (2, 3)), w)
    assert_unchanged(relay.Function([x, w], relay.reshape(layer, (8,))), SimplifyExpr())

"""Tables that are embeddings and weights are stored once."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 1027, 256  # the weight is filled up to whole blocks
TABLE = RNG.uniform(-1, 1, (ROWS, COLUMNS)).astype("float32")
INDICES = np.array([[0, 15, 16, -1], [ROWS - 1, ROWS, 500, 3 * ROWS]])


def indices_of(mode: str) -> np.ndarray:
    return INDICES % ROWS if mode == "fast" else INDICES  # there, others are not defined


def tied(mode: str, head: np.ndarray) -> relay.Function:
    indices = relay.var("i", shape=INDICES.shape, dtype="int64")
    rows = relay.take(relay.const(TABLE), indices, axis=0, mode=mode)
    scores = relay.nn.dense(relay.reshape(relay.tanh(rows), (-1, COLUMNS)), relay.const(head))
    return relay.Function([indices], relay.Tuple([rows, scores]))


def run(
    func: relay.Function, level: int, indices: np.ndarray = INDICES
) -> tuple[list[np.ndarray], int]:
    """The outputs, and the bytes of the constants."""
    with tvm.transform.PassContext(opt_level=level):
        lib = relay.build(func, "llvm -mcpu=skylake")
    module = GraphModule(lib["default"](tvm.cpu()))
    module.run(i=indices)
    outputs = [module.get_output(i).numpy() for i in range(2)]
    return outputs, sum([value.numpy().nbytes for value in lib.params.values()])


@pytest.mark.parametrize("mode", ["clip", "wrap", "fast"])
def test_embedding_is_read_from_the_packed_weight(mode: str) -> None:
    actual, size = run(tied(mode, TABLE.copy()), 3, indices_of(mode))
    expected, _ = run(tied(mode, TABLE), 0, indices_of(mode))
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert size < 1.2 * TABLE.nbytes


def test_other_tables_are_not_shared() -> None:
    _, size = run(tied("clip", TABLE + 1), 3)
    assert size >= 2 * TABLE.nbytes

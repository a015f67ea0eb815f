"""What types tell of the elements of shapes that are computed."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
from tvm.relay.transform.known_elements import known_elements, known_value

X = relay.var("x", shape=(relay.Any(), 256, 14))
N = relay.var("n", shape=(1,), dtype="int64")
SHAPE = relay.shape_of(X, "int64")


def vector(*values: int) -> relay.Expr:
    return relay.const(np.array(values, "int64"))


def test_extents_of_types_are_known() -> None:
    assert known_elements(SHAPE) == (None, 256, 14)
    assert known_elements(relay.strided_slice(SHAPE, [1], [3])) == (256, 14)
    assert known_elements(relay.concatenate([N, SHAPE], 0)) == (None, None, 256, 14)


def test_arithmetic_knows_what_its_operands_know() -> None:
    assert known_elements(SHAPE * vector(2, 2, 3)) == (None, 512, 42)
    assert known_elements(relay.floor_divide(relay.cast(SHAPE, "int32"), relay.const(7))) == (
        None,
        36,
        2,
    )


def test_a_choice_is_known_where_its_condition_and_what_it_chooses_are() -> None:
    free = relay.equal(vector(-1, 5, -1), vector(-1, -1, -1))
    assert known_elements(relay.where(free, vector(1, 1, 1), SHAPE)) == (1, 256, 1)
    assert known_elements(relay.where(relay.equal(SHAPE, vector(1, 1, 1)), SHAPE, vector(7, 7, 7))) == (
        None, 7, 7,
    )  # fmt: skip


def test_what_a_product_with_zero_hides_is_not_guessed() -> None:
    assert known_elements(N * vector(0)) == (None,)
    assert known_value(relay.take(SHAPE, relay.var("i", shape=(), dtype="int64"), 0)) is None


def test_long_vectors_and_floats_are_no_shapes() -> None:
    assert known_elements(relay.const(np.zeros(100, "int64"))) == ()
    assert known_elements(relay.const(np.zeros(2, "float32"))) == ()


def test_selected_extents_fold() -> None:
    func = relay.Function([X], relay.take(SHAPE, relay.const(1, "int64"), 0))
    folded = relay.transform.FoldConstant()(tvm.IRModule.from_expr(func))["main"].body
    assert isinstance(folded, relay.Constant) and int(folded.data.numpy()) == 256

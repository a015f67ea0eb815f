"""Records of attributes that operators' functions describe: as the classic release has them."""

from __future__ import annotations

import pickle

import pytest

import tvm
from tvm import relay
from tvm.relay.op import op_attrs

X = relay.var("x", shape=(2, 4))


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("ConcatenateAttrs", "axis", 0),
        ("StackAttrs", "axis", 0),
        ("GatherAttrs", "axis", 0),
        ("YoloReorgAttrs", "stride", 1),
    ],
)
def test_what_only_the_function_requires_may_be_left_out(name: str, field: str, value: int) -> None:
    assert getattr(op_attrs, name)()[field] == value


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        (relay.argmax(X), ["select_last_index", "axis", "keepdims", "exclude"]),
        (relay.take(X, X), ["batch_dims", "axis", "mode"]),
        (relay.annotation.on_device(X, tvm.cpu()), ["virtual_device", "constrain_result", "constrain_body"]),
        (relay.vision.roi_align(X, X, (2, 2), 1.0), ["pooled_size", "spatial_scale", "sample_ratio", "mode", "aligned", "layout"]),
        (relay.unique(relay.var("v", shape=(3,))).tuple_value, ["sorted", "return_counts"]),
    ],
    ids=["argmax", "take", "on_device", "roi_align", "unique"],
)  # fmt: skip
def test_fields_have_their_classic_names_and_order(call: relay.Call, fields: list[str]) -> None:
    assert call.attrs.keys() == fields


def test_records_survive_pickling() -> None:
    call = relay.strided_slice(X, [0, None], [None, 2])
    again = pickle.loads(pickle.dumps(call.attrs))
    assert tvm.ir.structural_equal(again, call.attrs)
    assert type(again) is op_attrs.StridedSliceAttrs


def test_arguments_keep_names_that_parameters_have_not() -> None:
    names = [argument.name for argument in relay.op.get("variance").arguments]
    assert names == ["data", "mean"]


def test_one_part_of_several_results_is_a_tuple_of_one() -> None:
    (part,) = relay.split(X, 1)
    assert isinstance(part, relay.TupleGetItem)
    (grid,) = relay.meshgrid([relay.var("v", shape=(3,))])
    assert isinstance(grid, relay.TupleGetItem)


def test_relations_that_name_their_arguments_get_checked_types() -> None:
    x, index = relay.var("x", shape=(2, 3)), relay.var("i", shape=(1,), dtype="int32")
    call = relay.Call(relay.op.get("take"), [x, relay.Tuple([index])], relay.take(x, index).attrs)
    with pytest.raises(tvm.error.TypeCheckError, match="take requires a tensor for indices"):
        relay.transform.InferTypeLocal(call)
    with pytest.raises(tvm.error.TypeCheckError, match="of rank 3 for tensor_a, got shape"):
        relay.transform.InferTypeLocal(relay.nn.batch_matmul(x, x))

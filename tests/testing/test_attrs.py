"""Attributes that tests are written with, and what attributes reject."""

import pytest

import tvm
import tvm.testing
from tvm.ir.base import load_json, save_json, structural_equal


def test_attributes_for_tests() -> None:
    attrs = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(3, 4))
    assert (attrs.name, attrs.axis, [int(value) for value in attrs.padding]) == ("a", 10, [3, 4])
    assert structural_equal(attrs, load_json(save_json(attrs)))
    for wrong in ({"axis": 100}, {"unknown": 1}):
        with pytest.raises(AttributeError):
            tvm.ir.make_node("attrs.TestAttrs", name="a", **wrong)


@pytest.mark.parametrize(
    "config", [{"tir.UnrollLoop": {"invalid": 1}}, {"no.such.key": 1}, {"tir.UnrollLoop": 1}]
)
def test_unknown_options_are_attribute_errors(config: dict[str, object]) -> None:
    with pytest.raises(AttributeError):
        tvm.transform.PassContext(config=config)


def test_containers_have_type_keys() -> None:
    convert = tvm.runtime.convert
    assert convert([1]).type_key == "Array" and convert({"a": 1}).type_key == "Map"


def test_variants_are_checked() -> None:
    accepts = tvm.get_global_func("testing.AcceptsVariant")
    assert accepts("text") == "runtime.String" and accepts(1) == "IntImm"
    with pytest.raises(TypeError):
        accepts(tvm.tir.FloatImm("float32", 0.5))

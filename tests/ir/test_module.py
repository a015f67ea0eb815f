from __future__ import annotations

import pytest

from tvm import tir
from tvm.error import OpNotImplemented, TVMError
from tvm.ir import (
    GlobalVar,
    GlobalVarSupply,
    IRModule,
    NameSupply,
    Op,
    register_op_attr,
    structural_equal,
)
from tvm.ir.attrs import Attrs, DictAttrs, make_node


def _func(value: int = 0) -> tir.PrimFunc:
    return tir.PrimFunc([], tir.Evaluate(value))


def test_functions_are_found_by_name_and_by_variable() -> None:
    mod = IRModule({"main": _func()})
    gvar = mod.get_global_var("main")
    assert mod["main"] is mod[gvar] and "main" in mod and gvar in mod
    with pytest.raises(ValueError, match=r"no function is called 'mian'.*'main'"):
        mod["mian"]


def test_replacing_a_function_keeps_its_variable() -> None:
    mod = IRModule({"main": _func()})
    gvar, new = mod.get_global_var("main"), _func(1)
    mod["main"] = new
    assert mod.get_global_var("main") is gvar and mod[gvar] is new and len(mod.functions) == 1


def test_a_clone_changes_on_its_own() -> None:
    mod = IRModule({"main": _func()})
    other = mod.clone()
    other["f"] = _func()
    assert "f" not in mod


def test_mapping_nothing_returns_the_same_module() -> None:
    mod = IRModule({"main": _func()})
    assert mod.map_functions(lambda _, f: f) is mod


def test_what_is_no_function_is_rejected() -> None:
    with pytest.raises(TVMError, match="requires a function for main"):
        IRModule({"main": 3})


def test_supplies_give_unique_names() -> None:
    names = NameSupply("p")
    assert [names.fresh_name("a"), names.fresh_name("a"), names.fresh_name("a", False)] == [
        "p_a", "p_a_1", "a"
    ]  # fmt: skip
    supply = GlobalVarSupply(IRModule({"main": _func()}))
    assert supply.fresh_global("main").name_hint == "main_1"
    assert supply.unique_global_for("f") is supply.unique_global_for("f")


def test_operators_have_facets_under_classic_names() -> None:
    op = Op.get("tir.exp")
    register_op_attr("tir.exp", "my.attr", 3)
    assert op.get_attr("my.attr") == 3
    register_op_attr("tir.exp", "my.attr", 4, level=5)
    assert op.get_attr("my.attr") == 3
    op.reset_attr("my.attr")
    assert not op.has_attr("my.attr")
    assert op.get_attr("TCallEffectKind") is op.effect


def test_unknown_operators_are_rejected_with_similar_names() -> None:
    with pytest.raises(OpNotImplemented, match=r"(?s)'tir.expp'.*did you mean.*'tir.exp'"):
        Op.get("tir.expp")


class TestAttrs(Attrs, key="test.Attrs"):
    __test__ = False
    axis: int = -1
    name: str = ""


def test_attributes_behave_as_records_and_mappings() -> None:
    attrs = make_node("test.Attrs", axis=2)
    assert attrs.axis == attrs["axis"] == attrs.get_int("axis") == 2
    assert attrs.keys() == ["axis", "name"]
    with pytest.raises(KeyError, match="axsi"):
        attrs["axsi"]
    with pytest.raises(TVMError, match="has the fields"):
        make_node("test.Attrs", axsi=2)
    with pytest.raises(TVMError, match="type key"):
        make_node("test.Atrs")


def test_numbers_of_attributes_made_by_hand_are_constants() -> None:
    attrs = make_node("DictAttrs", x=1, y=0.5, name="xyz", padding=(0, 0))
    assert (attrs.x.value, attrs.x.dtype, attrs["y"].value) == (1, "int32", 0.5)
    assert attrs.name == "xyz" and list(attrs.padding) == [0, 0]
    assert structural_equal(attrs, make_node("DictAttrs", padding=(0, 0), name="xyz", y=0.5, x=1))
    assert structural_equal(make_node("DictAttrs", x=1), DictAttrs({"x": 1}))


def test_dictionary_attributes() -> None:
    attrs = DictAttrs({"Primitive": 1})
    assert attrs.Primitive == 1 and attrs.get("x", 5) == 5 and "Primitive" in attrs
    assert attrs.without("Primitive").keys() == set()
    assert GlobalVar("f").name_hint == "f"


def test_loop_level_nodes_have_their_classic_place() -> None:
    import tvm.ir

    assert tvm.ir.Range(0, 4).extent.value == 4 and tvm.ir.IntImm is tir.IntImm
    with pytest.raises(AttributeError, match="no attribute 'Ragne'"):
        tvm.ir.Ragne


def test_names_of_no_operator_are_attributes_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no operator is called 'nope'"):
        Op.get("nope")
    with pytest.raises(OpNotImplemented):
        Op.get("nope")

from __future__ import annotations

import base64
import json
import subprocess
import sys

import pytest

from tvm import relay, tir
from tvm.error import TVMError
from tvm.ir import (
    FuncType,
    GlobalVar,
    IncompleteType,
    IRModule,
    TensorType,
    TupleType,
    TypeVar,
    assert_structural_equal,
    get_first_structural_mismatch,
    load_json,
    save_json,
    structural_equal,
    structural_hash,
)
from tvm.runtime.object_path import ObjectPath


def _sum_loop(name: str, extent: int = 8, step: int = 1) -> tir.PrimFunc:
    i = tir.Var(name, "int32")
    buffer = tir.decl_buffer((extent,), "float32", name=f"{name}_buffer")
    store = tir.BufferStore(buffer, tir.BufferLoad(buffer, [i]) + float(step), [i])
    return tir.PrimFunc([buffer], tir.For(i, 0, extent, tir.ForKind.SERIAL, store))


def test_bound_names_do_not_count() -> None:
    assert structural_equal(_sum_loop("i"), _sum_loop("j"))
    assert structural_hash(_sum_loop("i")) == structural_hash(_sum_loop("j"))


def test_values_count() -> None:
    assert not structural_equal(_sum_loop("i"), _sum_loop("i", step=2))
    assert structural_hash(_sum_loop("i")) != structural_hash(_sum_loop("i", step=2))


def test_free_variables_are_equal_to_themselves_only() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert structural_equal(x + 1, x + 1)
    assert not structural_equal(x + 1, y + 1)
    assert structural_equal(x + 1, y + 1, map_free_vars=True)
    assert structural_hash(x + 1, map_free_vars=True) == structural_hash(y + 1, map_free_vars=True)


def test_free_variables_map_one_to_one() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert not structural_equal(x + y, x + x, map_free_vars=True)
    assert not structural_equal(x + x, x + y, map_free_vars=True)
    assert structural_equal(x + y, y + x, map_free_vars=True)


def test_variables_of_other_types_do_not_map() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int64")
    assert not structural_equal(x, y, map_free_vars=True)


def test_the_path_of_the_first_difference_is_told() -> None:
    paths = get_first_structural_mismatch(_sum_loop("i"), _sum_loop("i", extent=9))
    assert paths is not None
    assert str(paths[0]) == str(paths[1])
    assert "extent" in str(paths[0]) or "shape" in str(paths[0])
    assert get_first_structural_mismatch(_sum_loop("i"), _sum_loop("i")) is None
    with pytest.raises(ValueError, match="StructuralEqual check failed, caused by lhs at <root>"):
        assert_structural_equal(_sum_loop("i"), _sum_loop("i", step=3))


def test_paths_lead_to_what_only_one_side_has() -> None:
    lhs, rhs = get_first_structural_mismatch({"a": [1, 2]}, {"a": [1, 2, 3]})
    assert (str(lhs), str(rhs)) == ('<root>["a"][<missing element #2>]', '<root>["a"][2]')
    assert rhs.follow({"a": [1, 2, 3]}) == 3
    lhs, rhs = get_first_structural_mismatch({"a": 1, "b": 2}, {"a": 1, "c": 2})
    assert (str(lhs), str(rhs)) == ('<root>["b"]', "<root>[<missing entry>]")


def test_types_compare_by_structure() -> None:
    assert TensorType((1, 2)) == TensorType((1, 2))
    assert TensorType((1, 2)) != TensorType((1, 3))
    a, b = TypeVar("a"), TypeVar("b")
    assert FuncType([a], a, [a]) == FuncType([b], b, [b])
    assert FuncType([a], a, [a]) != FuncType([TensorType((1,))], b, [b])
    assert hash(TensorType((1, 2))) == hash(TensorType((1, 2)))


def test_modules_match_functions_by_name() -> None:
    one = IRModule({GlobalVar("f"): _sum_loop("i"), GlobalVar("g"): _sum_loop("i", 9)})
    two = IRModule({GlobalVar("g"): _sum_loop("j", 9), GlobalVar("f"): _sum_loop("j")})
    assert structural_equal(one, two)
    assert structural_hash(one) == structural_hash(two)
    assert not structural_equal(one, IRModule({GlobalVar("f"): _sum_loop("i")}))


def test_deep_chains_are_compared_and_hashed() -> None:
    def chain() -> tir.PrimExpr:
        node: tir.PrimExpr = tir.Var("x", "int32")
        for _ in range(50_000):
            node = tir.Add(node, tir.IntImm("int32", 1))
        return node

    a, b = chain(), chain()
    assert structural_equal(a, b, map_free_vars=True)
    assert structural_hash(a, True) == structural_hash(b, True)


def test_the_hash_does_not_depend_on_the_process() -> None:
    code = (
        "from tvm import tir; from tvm.ir import structural_hash;"
        "x = tir.Var('x', 'int32'); print(structural_hash((x * 2 + 1, 'text', 1.5, None)))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(seen) == 1


def test_json_keeps_structure_and_sharing() -> None:
    func = _sum_loop("i")
    assert structural_equal(load_json(save_json(func)), func)
    module = IRModule({"main": func}, attrs={"k": 3})
    again = load_json(save_json(module))
    assert structural_equal(again, module) and again.attrs["k"] == 3
    x = tir.Var("x", "int32")
    pair = load_json(save_json((x, x + 1)))
    assert pair[1].a is pair[0]


def test_json_of_special_floats() -> None:
    value = load_json(save_json(tir.FloatImm("float32", float("inf"))))
    assert value.value == float("inf")


@pytest.mark.parametrize(
    "text", ["", "{}", "[1, 2]", '{"root": {"node": 3}, "nodes": [], "arrays": []}',
             '{"root": 0, "nodes": [{"type_key": "tir.Nope", "attrs": {}}], "arrays": []}',
             '{"root": {"enum": ["tvm.nowhere", "A", "B"]}, "nodes": [], "arrays": []}',
             '{"root": {"enum": ["tvm.error", "TVMError", "mro"]}, "nodes": [], "arrays": []}',
             "[" * 100_000]
)  # fmt: skip
def test_broken_json_gives_one_error(text: str) -> None:
    with pytest.raises(TVMError, match="load_json"):
        load_json(text)


def test_an_array_of_a_false_shape_takes_no_memory() -> None:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000000,), }\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    text = f"float32:{base64.b64encode(content).decode()}"
    with pytest.raises(TVMError, match="an array of shape"):
        load_json(json.dumps({"root": {"array": 0}, "nodes": [], "arrays": [text]}))


def test_types_still_to_be_found_are_equal() -> None:
    one, other = [TupleType([IncompleteType()] * 2) for _ in range(2)]
    assert_structural_equal(one, other)
    assert structural_hash(one) == structural_hash(other)


def test_truth_values_are_equal_as_literals() -> None:
    attrs = {"tir.noalias": tir.IntImm("bool", 1)}
    assert structural_equal(attrs, {"tir.noalias": True})
    assert structural_hash(attrs) == structural_hash({"tir.noalias": True})
    assert not structural_equal(attrs, {"tir.noalias": False})


def test_an_entry_that_only_one_map_has_is_the_mismatch() -> None:
    short, long = {"a": 3, "b": 4}, {"a": 3, "b": 4, "c": 5}
    root = ObjectPath.root()
    expected = (root.missing_map_entry(), root.map_value("c"))
    assert get_first_structural_mismatch(short, long) == expected
    assert get_first_structural_mismatch(long, short) == expected[::-1]


def test_free_variables_of_other_names_have_other_hashes() -> None:
    a, b = relay.Var("a"), relay.Var("b")
    assert structural_hash(a) != structural_hash(b)
    assert structural_hash(a, True) == structural_hash(b, True)


def test_empty_tuples_are_equal_however_often_one_is_used() -> None:
    unit = relay.Tuple([])
    twice = relay.Tuple([unit, unit])
    apart = relay.Tuple([relay.Tuple([]), relay.Tuple([])])
    assert structural_equal(twice, apart)
    assert structural_hash(twice) == structural_hash(apart)
    call = relay.exp(relay.const(1.0))
    other = relay.exp(relay.const(1.0))
    assert not structural_equal(relay.Tuple([call, call]), relay.Tuple([call, other]))


def test_mismatches_of_parameters_have_their_index() -> None:
    body = tir.Evaluate(0)
    one, two = (
        tir.PrimFunc([tir.Var("x", dtype) for dtype in dtypes], body)
        for dtypes in (["int32", "int32"], ["int32", "int64"])
    )
    mismatch = get_first_structural_mismatch(one, two)
    assert mismatch is not None and str(mismatch[0]) == "<root>.params[1].dtype"
    mismatch = get_first_structural_mismatch(one, tir.PrimFunc(one.params[:1], body))
    assert mismatch is not None and str(mismatch[1]) == "<root>.params[<missing element #1>]"


def test_free_variables_of_other_names_have_other_hashes() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert structural_hash(x + 1) != structural_hash(y + 1)
    assert structural_hash(x + 1, map_free_vars=True) == structural_hash(y + 1, map_free_vars=True)

"""Questions about programs."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay
from tvm.relay import analysis
from tvm.relay.analysis import Feature
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.transform import FuseOps, InferType


def typed(func: relay.Function) -> tvm.IRModule:
    return InferType()(tvm.IRModule.from_expr(func))


def test_well_formed_rejects_double_binding() -> None:
    x, y = relay.var("x", shape=(1,)), relay.var("y")
    assert analysis.well_formed(relay.Let(y, x, y))
    assert not analysis.well_formed(relay.Let(y, x, relay.Let(y, x, y)))


def test_check_kind() -> None:
    tensor = relay.TensorType((1,), "float32")
    assert analysis.check_kind(relay.TupleType([tensor])) == relay.TypeKind.Type
    assert analysis.check_kind(relay.TypeVar("s", relay.TypeKind.ShapeVar)) == 1
    with pytest.raises(TypeError, match="requires types"):
        analysis.check_kind(relay.TupleType([relay.TypeVar("s", relay.TypeKind.ShapeVar)]))


def test_check_constant() -> None:
    assert analysis.check_constant(relay.Tuple([relay.const(1)]))
    assert not analysis.check_constant(relay.var("x"))


def test_type_variables() -> None:
    t = relay.TypeVar("t")
    x = relay.var("x", t)
    func = relay.Function([x], x, t, [t])
    assert analysis.all_type_vars(func) == [t]
    assert analysis.bound_type_vars(func) == [t]
    assert analysis.free_type_vars(func) == []
    assert analysis.free_type_vars(x) == [t]


def test_dtypes_and_operator_counts() -> None:
    x = relay.var("x", shape=(2,))
    mod = typed(relay.Function([x], relay.cast(relay.exp(relay.exp(x)), "int8")))
    assert analysis.all_dtypes(mod["main"]) == {"float32", "int8"}
    assert analysis.list_op_freqs(mod) == {"exp": 2, "cast": 1}


def test_total_mac_number() -> None:
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    conv = relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1))
    mod = typed(relay.Function([x, w], conv))
    assert analysis.get_total_mac_number(mod["main"]) == 4 * 8 * 8 * 3 * 9
    a, b = relay.var("a", shape=(2, 5)), relay.var("b", shape=(7, 5))
    mod = typed(relay.Function([a, b], relay.nn.dense(a, b)))
    assert analysis.get_total_mac_number(mod["main"]) == 2 * 5 * 7


@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_macs_of_convolutions_are_those_of_any_layout(layouts: tuple[str, str]) -> None:
    of_data, of_kernel = layouts
    x = relay.var("x", shape=[{"N": 1, "C": 3, "H": 8, "W": 8}[axis] for axis in of_data])
    w = relay.var("w", shape=[{"O": 4, "I": 3, "H": 3, "W": 3}[axis] for axis in of_kernel])
    conv = relay.nn.conv2d(x, w, padding=1, data_layout=of_data, kernel_layout=of_kernel)
    mod = typed(relay.Function([x, w], conv))
    assert analysis.get_total_mac_number(mod["main"]) == 4 * 8 * 8 * 3 * 9


def test_macs_of_transposed_products() -> None:
    a, b = relay.var("a", shape=(2, 5, 3)), relay.var("b", shape=(2, 7, 5))
    mod = typed(relay.Function([a, b], relay.nn.batch_matmul(a, b, transpose_a=True)))
    assert analysis.get_total_mac_number(mod["main"]) == 2 * 3 * 7 * 5


def test_extract_fused_functions_finds_each_once() -> None:
    x = relay.var("x", shape=(2,))
    mod = FuseOps(0)(typed(relay.Function([x], relay.exp(relay.exp(x)))))
    assert len(analysis.extract_fused_functions(mod)) == 1


def test_features() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    shared = relay.exp(x)
    found = analysis.detect_feature(relay.Let(y, shared + shared, y))
    assert {Feature.fLet, Feature.fGraph, Feature.fCall, Feature.fVar} <= found
    assert Feature.fIf not in found


def test_count_layers() -> None:
    x = relay.var("x", shape=(2, 2))
    w = relay.var("w", shape=(2, 2))
    long = relay.nn.dense(relay.nn.dense(x, w), w)
    assert analysis.count_layers(long + relay.nn.dense(x, w), ["nn.dense"]) == 2


def test_call_graph() -> None:
    f, x, y = relay.GlobalVar("f"), relay.var("x", shape=(1,)), relay.var("y", shape=(1,))
    mod = tvm.IRModule({f: relay.Function([x], x)})
    mod["main"] = relay.Function([y], f(f(y)))
    graph = analysis.CallGraph(mod)
    assert graph.ref_count("f") == 1
    assert graph.global_call_count("main") == 2
    assert not graph.is_recursive("f")
    assert graph.reachable("main") == ["main", "f"]


def test_copy_of_a_call_over_arguments_of_the_same_types_has_the_very_type() -> None:
    x, y = relay.var("x", shape=(2, 300)), relay.var("y", shape=(2, 300))
    call = relay.add(x, relay.const(1.0))
    ty = infer_type_of(call)
    assert infer_type_of(call.replace(args=(y, call.args[1]))) is ty
    other = call.replace(args=(relay.var("z", shape=(3, 300)), call.args[1]))
    assert infer_type_of(other) == relay.TensorType((3, 300))


def test_variables_come_in_the_order_of_their_scopes() -> None:
    x, y, a = relay.var("x"), relay.var("y"), relay.var("a")
    func = relay.Function([x, y], relay.Let(a, x, relay.Tuple([a])))
    assert [v.name_hint for v in analysis.bound_vars(func)] == ["x", "y", "a"]
    s, t, u = relay.TypeVar("s"), relay.TypeVar("t"), relay.TypeVar("u")
    assert analysis.all_type_vars(relay.FuncType([t], u, [s])) == [s, t, u]


def test_count_layers_of_a_module_is_that_of_main() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(3, 3))
    func = relay.Function([x, w], relay.nn.dense(relay.nn.dense(x, w), w))
    assert analysis.count_layers(tvm.IRModule.from_expr(func), ["nn.dense"]) == 2

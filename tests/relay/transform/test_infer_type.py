"""Type inference."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.error import TypeCheckError

from .common import typed

F32 = "float32"


def type_of(func: relay.Function) -> relay.Type:
    return typed(func)["main"].checked_type.ret_type


def tensor(*shape: int, dtype: str = F32) -> relay.TensorType:
    return relay.TensorType(shape, dtype)


def test_call_tuple_and_item() -> None:
    x = relay.var("x", shape=(1, 4))
    body = relay.Tuple([relay.exp(x), relay.const(1)])
    assert type_of(relay.Function([x], body)) == relay.TupleType(
        [tensor(1, 4), tensor(dtype="int32")]
    )
    assert type_of(relay.Function([x], relay.TupleGetItem(body, 1))) == tensor(dtype="int32")


def test_types_are_kept_in_the_nodes() -> None:
    x = relay.var("x", shape=(1, 4))
    y = relay.exp(x)
    typed(relay.Function([x], y))
    assert y.checked_type == tensor(1, 4)
    with pytest.raises(TypeCheckError, match="type inference"):
        relay.exp(x).checked_type


def test_inferring_again_returns_the_same_module() -> None:
    x = relay.var("x", shape=(1, 4))
    mod = typed(relay.Function([x], relay.exp(x)))
    assert relay.transform.InferType()(mod) is mod


def test_only_new_nodes_are_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    x = relay.var("x", shape=(1, 4))
    y = relay.exp(x)
    typed(relay.Function([x], y))
    op = tvm.ir.Op.get("exp")
    relation = op.infer_type
    seen = []

    def watched(attrs: object, types: list[relay.Type]) -> relay.Type:
        seen.append(types)
        return relation(attrs, types)

    monkeypatch.setattr(op, "infer_type", watched)
    typed(relay.Function([x], relay.exp(y)))
    assert len(seen) == 1


def test_return_type_is_written_down() -> None:
    x = relay.var("x", shape=(1, 4))
    assert typed(relay.Function([x], relay.exp(x)))["main"].ret_type == tensor(1, 4)


def test_weights_without_annotation_get_their_shapes() -> None:
    x, w, b = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w"), relay.var("b")
    conv = relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1))
    main = typed(relay.Function([x, w, b], relay.nn.bias_add(conv, b)))["main"]
    assert [p.type_annotation for p in main.params[1:]] == [tensor(4, 3, 3, 3), tensor(4)]
    assert main.body.args[0].args[1] is main.params[1]


def test_batch_norm_and_dense_parameters() -> None:
    x = relay.var("x", shape=(2, 5))
    names = [relay.var(n) for n in ("g", "b", "m", "v", "w")]
    y = relay.nn.batch_norm(x, *names[:4])[0]
    main = typed(relay.Function([x, *names], relay.nn.dense(y, names[4], units=7)))["main"]
    assert [p.type_annotation for p in main.params[1:]] == [tensor(5)] * 4 + [tensor(7, 5)]


def test_let_if_and_references() -> None:
    c, x, v, r = relay.var("c", "bool"), relay.var("x", F32), relay.var("v"), relay.var("r")
    body = relay.Let(v, relay.exp(x), relay.If(c, v, x))
    assert type_of(relay.Function([c, x], body)) == tensor()
    body = relay.Let(r, relay.RefCreate(x), relay.RefRead(r))
    assert type_of(relay.Function([x], body)) == tensor()


def test_closure_gets_parameter_types_from_its_call() -> None:
    x, p = relay.var("x", shape=(3,)), relay.var("p")
    assert type_of(relay.Function([x], relay.Function([p], relay.exp(p))(x))) == tensor(3)


def test_recursive_let_function() -> None:
    f = relay.var("f")
    n = relay.var("n", "int32")
    body = relay.If(relay.less(n, relay.const(1)), n, f(n - relay.const(1)))
    loop = relay.Function([n], body, relay.TensorType((), "int32"))
    x = relay.var("x", "int32")
    assert type_of(relay.Function([x], relay.Let(f, loop, f(x)))) == tensor(dtype="int32")


def test_global_functions_call_each_other() -> None:
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    helper = relay.GlobalVar("helper")
    mod = tvm.IRModule({helper: relay.Function([x], relay.exp(x))})
    mod["main"] = relay.Function([y], helper(y))
    assert relay.transform.InferType()(mod)["main"].ret_type == tensor(3)


def test_polymorphic_function() -> None:
    t = relay.TypeVar("t")
    p, x = relay.var("p", t), relay.var("x", shape=(2, 3))
    identity = relay.Function([p], p, t, [t])
    assert type_of(relay.Function([x], identity(x))) == tensor(2, 3)


def test_unknown_dimensions_flow_through() -> None:
    x = relay.var("x", relay.TensorType((relay.Any(), 4), F32))
    assert str(type_of(relay.Function([x], relay.exp(x)))) == "Tensor[(?, 4), float32]"


def test_branches_of_different_extent_join() -> None:
    c = relay.var("c", "bool")
    a, b = relay.var("a", shape=(2, 4)), relay.var("b", shape=(3, 4))
    found = type_of(relay.Function([c, a, b], relay.If(c, a, b)))
    assert str(found) == "Tensor[(?, 4), float32]"


def test_deep_and_wide_programs() -> None:
    x = relay.var("x", shape=(2,))
    body: relay.Expr = x
    for _ in range(50_000):
        body = relay.exp(body)
    assert type_of(relay.Function([x], body)) == tensor(2)


def error_of(func: relay.Function) -> str:
    with pytest.raises(TypeCheckError) as caught:
        typed(func)
    return str(caught.value)


def test_error_shows_the_call_and_its_argument_types() -> None:
    x, w = relay.var("x", shape=(1, 16)), relay.var("w", shape=(8, 15))
    text = error_of(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    assert text.splitlines()[0].startswith("nn.dense")
    assert "%0 = nn.dense(%x, %w" in text
    assert "^^^^^^^^" in text
    assert "data: Tensor[(1, 16), float32]" in text
    assert "weight: Tensor[(8, 15), float32]" in text
    assert "function main" in text
    assert "infer.py" not in text


def test_error_for_untyped_variable_gives_the_remedy() -> None:
    text = error_of(relay.Function([x := relay.var("x")], relay.exp(x)))
    assert "type of %x cannot be inferred" in text
    assert 'relay.var("x", shape=' in text


def test_error_for_wrong_return_type() -> None:
    x = relay.var("x", shape=(2,))
    text = error_of(relay.Function([x], x, tensor(3)))
    assert "declared to return Tensor[(3,), float32]" in text


def test_error_for_wrong_argument_count_and_type() -> None:
    x, p = relay.var("x", shape=(2,)), relay.var("p", shape=(3,))
    inner = relay.Function([p], p)
    assert "takes 1 arguments, got 2" in error_of(relay.Function([x], inner(x, x)))
    p = relay.var("p", shape=(3,))
    inner = relay.Function([p], p)
    assert "argument 0 of the call must be Tensor[(3,)" in error_of(relay.Function([x], inner(x)))


def test_error_for_bad_tuple_index() -> None:
    x = relay.var("x", shape=(2,))
    assert "out of range" in error_of(relay.Function([x], relay.TupleGetItem(relay.Tuple([x]), 3)))


def test_error_for_condition_that_is_no_bool() -> None:
    x = relay.var("x", shape=(2,))
    assert "bool scalar" in error_of(relay.Function([x], relay.If(x, x, x)))


def test_infer_type_local() -> None:
    x = relay.const(np.zeros((2, 3), F32))
    assert relay.transform.InferTypeLocal(relay.transpose(x)) == tensor(3, 2)


def test_parameters_that_are_called_are_functions() -> None:
    x, f = relay.var("x", shape=(), dtype="int32"), relay.var("f")
    number = relay.scalar_type("int32")
    func = typed(relay.Function([x, f], relay.Call(f, [x]), number))["main"]
    assert func.checked_type == relay.FuncType([number, relay.FuncType([number], number)], number)


def test_calls_of_results_tell_the_types_of_functions_within() -> None:
    mod = tvm.IRModule()
    prelude = relay.prelude.Prelude(mod)
    x, y = relay.var("x"), relay.var("y", shape=(), dtype="int32")
    doubled = relay.Function([x], x * relay.const(2))
    mod["main"] = relay.Function([y], relay.Call(prelude.iterate(doubled, relay.const(3)), [y]))
    assert relay.transform.InferType()(mod)["main"].ret_type == relay.scalar_type("int32")


def test_results_whose_types_later_uses_tell_are_bound() -> None:
    text = """
    def @with[A](%x: int32) -> fn (fn (int32) -> A) -> A {
      fn (%k: fn (int32) -> A) -> A { %k(%x) }
    }
    def @main(%x: int32) -> int32 {
      let %g = @with(%x);
      %g(fn (%y: int32) -> int32 { add(%y, 1) })
    }
    """
    mod = relay.transform.InferType()(relay.parse(text))
    assert relay.create_executor("debug", mod).evaluate()(3).numpy() == 4


def test_calls_of_operators_tell_the_types_of_their_arguments() -> None:
    x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(1, 10))
    untyped = relay.add(x, y)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, y], untyped)))
    call = mod["main"].body
    assert [tuple(int(e) for e in ty.shape) for ty in call.type_args] == [(10, 10), (1, 10)]
    assert [ty.dtype for ty in call.type_args] == ["float32", "float32"]
    tvm.ir.assert_structural_equal(call, relay.add(x, y))
    given = relay.Call(relay.var("f"), [x], None, [relay.TensorType((3,))])
    assert given.type_args[0] == relay.TensorType((3,))

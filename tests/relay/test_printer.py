"""The text form of programs."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay


def typed(func: relay.Function) -> tvm.IRModule:
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))


def test_function_with_shared_node_attributes_and_types() -> None:
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3), channels=4)
    func = relay.Function([x, w], relay.nn.relu(y) + y)
    t = "Tensor[(1, 4, 8, 8), float32]"
    assert str(typed(func)) == (
        f"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) -> {t} {{\n"
        "  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])"
        f" /* ty={t} */;\n"
        f"  %1 = nn.relu(%0) /* ty={t} */;\n"
        f"  add(%1, %0) /* ty={t} */\n"
        "}\n"
    )


def test_scalar_constants_show_their_dtype() -> None:
    texts = [str(relay.const(v, d)) for v, d in
             ((1, "int32"), (1, "int64"), (1.5, "float32"), (0.1, "float32"), (2.5, "float64"),
              (True, "bool"), (1.5, "float16"))]  # fmt: skip
    assert texts == ["1", "1i64", "1.5f", "0.1f", "2.5f64", "True", "1.5f16"]


def test_tensors_go_to_the_metadata() -> None:
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], x + relay.const(np.ones(2, "float32")))
    text = func.astext()
    assert "add(%x, meta[relay.Constant][0])" in text
    assert "#[metadata]" in text
    assert "#[metadata]" not in func.astext(show_meta_data=False)


def test_let_if_tuple_and_inner_function() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    c = relay.var("c", "bool")
    body = relay.Let(y, relay.exp(x), relay.If(c, relay.Tuple([y, x])[0], relay.log(y)))
    assert str(relay.Function([c, x], body)) == (
        "fn (%c: bool, %x: Tensor[(2,), float32]) {\n"
        "  let %y = exp(%x);\n"
        "  if (%c) {\n"
        "    %y\n"
        "  } else {\n"
        "    log(%y)\n"
        "  }\n"
        "}"
    )


def test_annotate_gives_the_comments() -> None:
    x = relay.var("x", shape=(2,))
    text = relay.Function([x], relay.exp(x)).astext(annotate=lambda e: "here")
    assert "exp(%x) /* here */" in text


def test_variables_of_one_name_are_distinguished() -> None:
    a, b = relay.var("x", shape=(2,)), relay.var("x", shape=(2,))
    assert "add(%x, %x_1)" in str(relay.Function([a, b], a + b))


def test_functions_that_share_an_expression_are_read_again() -> None:
    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    mod = tvm.IRModule({"f": relay.Function([x], shared), "main": relay.Function([x], shared + x)})
    text = relay.transform.InferType()(mod).astext()
    assert text.count("exp(%x)") == 2
    assert relay.parse(text).astext() == text


def test_printing_is_linear_and_deep() -> None:
    x = relay.var("x", shape=(2,))
    body: relay.Expr = x
    for _ in range(20_000):
        body = relay.exp(body) + body
    assert str(relay.Function([x], body)).count("\n") > 40_000


def test_types_as_text() -> None:
    assert str(relay.TensorType((1, relay.Any()), "int8")) == "Tensor[(1, ?), int8]"
    assert str(relay.TensorType((), "int8")) == "int8"
    assert str(relay.TupleType([relay.TensorType((3,), "int8")])) == "(Tensor[(3,), int8],)"


def test_layers_of_other_programs_are_named_positions_in_texts_are_not() -> None:
    x = relay.var("x", shape=(2,))
    named = relay.frontend.common.set_span(relay.exp(x), "Exp_0")
    func = relay.Function([x], relay.log(named))
    assert "exp(%x) /* span=Exp_0:0:0 */;" in func.astext()
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    assert "exp(%x) /* ty=Tensor[(2), float32] span=Exp_0:0:0 */;".replace("(2)", "(2,)") in (
        typed.astext()
    )
    assert "span" not in relay.parse(typed.astext()).astext()

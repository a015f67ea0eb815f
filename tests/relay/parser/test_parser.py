"""Reading programs from text: what is read, and what is rejected with which words."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.error import DiagnosticError
from tvm.relay.parser import SpanCheck

equal = tvm.ir.structural_equal


def expr(text: str) -> relay.Expr:
    return relay.parse_expr('#[version = "0.0.5"]\n' + text)


def test_literals() -> None:
    for text, value, dtype in (
        ("1", 1, "int32"), ("-3i64", -3, "int64"), ("1.5f", 1.5, "float32"), ("2f", 2, "float32"),
        ("1e-05f", 1e-5, "float32"), ("2.5f64", 2.5, "float64"), ("1.5f16", 1.5, "float16"),
        ("True", True, "bool"), ("False", False, "bool"), ("7u8", 7, "uint8"),
    ):  # fmt: skip
        got = expr(text)
        assert str(got.data.dtype) == dtype and got.data.numpy() == np.dtype(dtype).type(value)


def test_infix_operators_bind_as_usual() -> None:
    head = "free_var %a: int32; free_var %b: int32; free_var %c: int32;"
    assert equal(expr(head + "%a + %b * %c"), expr(head + "add(%a, multiply(%b, %c))"), True)
    assert equal(expr(head + "(%a - %b) - %c"), expr(head + "%a - %b - %c"), True)
    assert equal(expr(head + "%a < %b + %c"), expr(head + "less(%a, add(%b, %c))"), True)
    assert equal(expr(head + "-%a"), expr(head + "negative(%a)"), True)


def test_functions_attributes_and_graph_names() -> None:
    got = relay.parse("""
        #[version = "0.0.5"]
        def @main(%x: Tensor[(1, 3), float32], %w: Tensor[(4, 3), float32]) -> Tensor[(1, 4), float32] {
          %0 = nn.dense(%x, %w, units=4) /* a dense layer */;
          nn.relu(%0) // the result
        }
    """)
    x, w = relay.var("x", shape=(1, 3)), relay.var("w", shape=(4, 3))
    body = relay.nn.relu(relay.nn.dense(x, w, units=4))
    want = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], body)))
    tvm.ir.assert_structural_equal(got, want)
    assert got["main"].ret_type.concrete_shape == (1, 4)


def test_variables_are_scoped() -> None:
    got = expr("fn (%x: int32) { %f = fn (%x: float32) { %x }; let %y = %x; %y + %x }")
    assert got.body.value is got.params[0]
    got = expr("fn (%x: int32) { let %x = exp(%x); %x }")
    assert got.body.value.args[0] is got.params[0] and got.body.body is got.body.var


def test_recursive_functions_see_their_names() -> None:
    got = expr("let %f: fn (int32) -> int32 = fn (%n: int32) -> int32 { %f(%n) }; %f(1)")
    assert got.value.body.op is got.var


def test_types_of_data_and_match() -> None:
    mod = relay.parse("""
        type List[A] { Cons(A, List[A]), Nil }
        def @length[A](%l: List[A]) -> int32 {
          match (%l) {
            Cons(_, %rest) => 1 + @length(%rest),
            Nil => 0,
          }
        }
    """)
    match = mod["length"].body
    assert [c.lhs.constructor.name_hint for c in match.clauses] == ["Cons", "Nil"]
    assert mod["length"].ret_type == relay.scalar_type("int32")


def test_an_expression_becomes_main() -> None:
    mod = relay.parse("free_var %x: Tensor[(2,), float32]; exp(%x)")
    assert [p.name_hint for p in mod["main"].params] == ["x"]


def test_tables_and_modules_from_outside() -> None:
    value = relay.const(np.ones(2, "float32"))
    mod = relay.parse(
        "def @f() { meta[relay.Constant][0] }", init_meta_table={"relay.Constant": [value]}
    )
    assert mod["f"].body is value
    both = relay.parse("def @main() { @f() }", init_module=mod)
    assert both["main"].body.op is both.get_global_var("f")


def test_calls_have_spans() -> None:
    mod = relay.fromtext("def @main(%x: int32) {\n  negative(%x)\n}", "prog")
    span = mod["main"].body.span
    assert (span.source_name.name, span.line, span.column, span.end_column) == ("prog", 2, 3, 15)
    assert SpanCheck()(mod) is mod


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def @main(%x: int32) { %y }", "knows no variable `%y`"),
        ("def @main(%x: int32) { ad(%x, %x) }", "knows no operator `ad`"),
        ("def @main(%x: int32) { add(%x, %x }", "requires `)` here, got `}`"),
        ("def @main(%x: int32) { @f(%x) }", "knows no function `@f`"),
        ("def @main(%x: flot32) { %x }", "knows no type `flot32`"),
        ("def @main(%x: Tensor[(1.5), int8]) { %x }", "requires an integer here, got `1.5`"),
        ("def @main() { 1 }\ndef @main() { 1 }", "found a second definition of `@main`"),
        ("def @main(%x: int32) { nn.softmax(%x, axes=1) }", "knows no attribute 'axes' of nn.softmax"),
        ("def @main() { meta[relay.Constant][0] }", "the metadata has 0 of them"),
        ("def @main() { let %x = 1 }", "requires `;` here"),
        ("def @main() { $ }", "does not know the sign '$'"),
        ('#[version = "0.0.4"]\ndef @main() { 1 }', 'requires the version "0.0.5"'),
        ("def @main() { 1 ", "requires `}` here, got the end of the text"),
        ("", "requires an expression here, got the end of the text"),
    ],
)  # fmt: skip
def test_errors(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        relay.parse(text) if text else relay.parse_expr(text)
    assert str(caught.value).startswith(f"relay.parse {message}") or message in str(caught.value)


def test_errors_show_the_place() -> None:
    with pytest.raises(DiagnosticError) as caught:
        relay.parse("def @main(%x: int32) {\n  nn.relo(%x)\n}")
    assert str(caught.value) == (
        "relay.parse knows no operator `nn.relo`\n"
        "  in from_string, line 2, column 3\n"
        "        nn.relo(%x)\n"
        "        ^^^^^^^\n"
        "  hint: did you mean 'nn.relu' or 'nn.pad'?"
    ) or "\n        nn.relo(%x)\n        ^^^^^^^\n" in str(caught.value)


def test_comments_lie_in_comments() -> None:
    expr = relay.parse_expr("// one line\n/* nested /* inner */ outer */ 1 + /**/ 2")
    assert expr.op.name == "add"
    with pytest.raises(tvm.error.DiagnosticError, match="requires an end of the comment"):
        relay.parse_expr("1 /* /* */")


def test_types_without_a_width_have_the_usual_one() -> None:
    func = relay.parse("def @main(%x: Tensor[(2,), float], %n: int) { (%x, %n) }")["main"]
    assert [p.type_annotation.dtype for p in func.params] == ["float32", "int32"]


def test_statements_may_end_in_two_semicolons() -> None:
    found = relay.parse_expr('#[version = "0.0.5"]\n();; ()')
    expected = relay.Let(relay.Var("_"), relay.Tuple([]), relay.Tuple([]))
    tvm.ir.assert_structural_equal(found, expected, map_free_vars=True)


def test_infinite_attributes_are_read() -> None:
    call = relay.clip(relay.var("x", shape=(2,)), -np.inf, np.inf)
    attrs = relay.parse_expr(call.astext()).attrs
    assert (attrs.a_min, attrs.a_max) == (-np.inf, np.inf)


def test_a_let_as_an_operand_stands_in_parentheses() -> None:
    x, v = relay.var("x", shape=()), relay.var("v")
    inner = relay.Let(v, x, v)
    func = relay.Function([x], relay.add(inner, inner))
    assert func.astext().count("{") == 1
    tvm.ir.assert_structural_equal(relay.parse_expr(func.astext()), func)


def test_constructors_have_names_of_their_own() -> None:
    for text in ("type A { Same }\ntype B { Same }", "type A { Same, Same }"):
        with pytest.raises(tvm.error.DiagnosticError, match="a second constructor `Same`"):
            relay.parse(f'#[version = "0.0.5"]\n{text}')


def test_calls_tell_what_type_parameters_stand_for() -> None:
    mod = relay.parse(
        """#[version = "0.0.5"]
        def @id[A](%x: A) -> A { %x }
        def @main(%f: float32) -> float32 { @id(%f) }"""
    )
    assert list(mod["main"].body.type_args) == [relay.TensorType(())]


def test_attributes_that_printed_programs_leave_out_differ_from_those_of_calls() -> None:
    call = relay.nn.lrn(relay.var("x", shape=(1, 4, 2, 2)))
    assert "alpha=1e-05f" in call.astext()
    read = relay.parse_expr("fn (%x: Tensor[(1, 4, 2, 2), float32]) { nn.lrn(%x) }").body
    assert read.attrs.alpha == 0.0001

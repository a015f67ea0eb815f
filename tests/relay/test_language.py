"""The language: data types, constructors, functions of functions, types that are left out."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import adt

LIST = """
type List[A] { Cons(A, List[A]), Nil, }
def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil, }
}
def @foldr[A, B](%f: fn (A, B) -> B, %z: B, %xs: List[A]) -> B {
  match (%xs) { Cons(%x, %rest) => %f(%x, @foldr(%f, %z, %rest)), Nil => %z, }
}
"""


def run(text: str, *args: object, kind: str = "debug") -> object:
    return relay.create_executor(kind, mod=relay.parse(LIST + text)).evaluate()(*args)


def test_constructors_defined_in_python_have_tags() -> None:
    header, item = relay.GlobalTypeVar("L"), relay.TypeVar("a")
    cons = relay.Constructor("C", [item, header(item)], header)
    nil = relay.Constructor("N", [], header)
    mod = tvm.IRModule()
    mod[header] = relay.TypeData(header, [item], [cons, nil])
    assert mod.get_constructor(cons.tag) is cons and mod.get_constructor(nil.tag) is nil
    with pytest.raises(ValueError, match="no constructor of the module has the tag 0"):
        mod.get_constructor(0)
    x, head = relay.var("x", "int32"), relay.var("head")
    clauses = [
        adt.Clause(adt.PatternConstructor(nil), relay.const(0)),
        adt.Clause(
            adt.PatternConstructor(cons, [adt.PatternVar(head), adt.PatternWildcard()]), head
        ),
    ]
    mod["main"] = relay.Function([x], adt.Match(cons(x, nil()), clauses))
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind, mod=mod).evaluate()(np.int32(3)).numpy() == 3


def test_constructor_without_fields_is_printed_by_its_name_alone() -> None:
    mod = relay.parse(LIST + "def @main() -> List[int32] { Cons(1, Nil) }")
    text = mod["main"].astext()
    assert "Nil()" not in text
    assert "Nil /*" in text
    assert isinstance(mod["main"].body.args[1], relay.Call)
    tvm.ir.assert_structural_equal(relay.parse(mod.astext()), mod, map_free_vars=True)


def test_lambda_takes_its_types_from_the_function_it_is_passed_to() -> None:
    text = "def @main(%n: int32) { @foldr(fn (%a, %b) { %a + %b }, 0, @map(fn (%x) { %x * 2 }, Cons(%n, Cons(%n + 1, Nil)))) }"
    assert run(text, np.int32(3)).numpy() == 14
    assert run(text, np.int32(3), kind="vm").numpy() == 14


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_constructor_is_a_function_as_any_other(kind: str) -> None:
    text = """def @main(%n: int32) {
      let %l = @foldr(Cons, Nil, Cons(%n, Cons(7, Nil)));
      @foldr(fn (%a, %b) { %a + %b }, 0, %l)
    }"""
    assert run(text, np.int32(3), kind=kind).numpy() == 10


def test_local_function_takes_its_types_from_its_call() -> None:
    f, y = relay.var("f"), relay.var("y")
    body = relay.Let(f, relay.Function([y], y + y), f(relay.const(1.5)))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(body))
    assert mod["main"].ret_type == relay.scalar_type("float32")


def test_recursive_local_function_needs_no_return_type() -> None:
    x = relay.var("x", "int32")
    loop = relay.while_loop(
        lambda i: relay.less(i, relay.const(10)), [relay.var("i")], lambda i: [i + relay.const(3)]
    )
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], loop(x))))
    assert mod["main"].ret_type == relay.TupleType([relay.scalar_type("int32")])
    assert relay.create_executor("debug", mod=mod).evaluate()(np.int32(1))[0].numpy() == 10


def test_type_parameters_fit_themselves_alone() -> None:
    with pytest.raises(tvm.error.TypeCheckError, match="declared to return A, its body has type"):
        relay.parse("def @f[A](%x: A, %y: int32) -> A { %y }")


def test_fields_are_changed_one_at_a_time() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    call = x + y
    assert relay.expr.CallWithFields(call, args=[x, y]).args == call.args
    assert relay.expr.CallWithFields(call) is call
    changed = relay.expr.CallWithFields(call, args=[y, x])
    assert changed.op is call.op
    assert changed.args[0] is y
    func = relay.Function([x], x)
    assert relay.function.FunctionWithFields(func, params=[x]).params[0] is x
    device = tvm.target.VirtualDevice(tvm.cpu(0))
    placed = relay.expr.TupleWithFields(relay.Tuple([x]), virtual_device=device)
    assert placed.virtual_device_ is device


def test_type_functors_visit_and_rebuild() -> None:
    class Widen(relay.TypeMutator):
        def visit_tensor_type(self, tt: relay.TensorType) -> relay.TensorType:
            return relay.TensorType(tt.shape, "float64")

    t = relay.TensorType((2,), "float32")
    ty = relay.FuncType([t, relay.TupleType([t, relay.RefType(t)])], t)
    wide = Widen().visit(ty)
    assert wide.arg_types[1].fields[1].value.dtype == "float64"
    assert relay.TypeMutator().visit(ty) is ty
    with pytest.raises(NotImplementedError):
        relay.TypeFunctor().visit(t)


def test_types_of_data_are_found_without_a_module() -> None:
    mod = relay.parse(LIST + "def @main(%n: int32) -> List[int32] { Cons(%n, Nil) }")
    built = mod["main"].body
    fresh = relay.Call(built.op, built.args)
    assert relay.transform.InferTypeLocal(fresh) == mod["main"].ret_type


def test_recursive_functions_need_no_return_types() -> None:
    mod = relay.parse("""
        def @even(%n: int32) { if (%n < 1) { True } else { @odd(%n - 1) } }
        def @odd(%n: int32) { if (%n < 1) { False } else { @even(%n - 1) } }
        def @factorial(%n: int32) { if (%n < 2) { 1 } else { %n * @factorial(%n - 1) } }
        def @main(%m: int32) {
          let %sum = fn (%n: int32) { if (%n < 1) { 0 } else { %n + %sum(%n - 1) } };
          (@odd(%m), @factorial(%m), %sum(%m))
        }
    """)
    assert mod["even"].ret_type == relay.scalar_type("bool")
    found = relay.create_executor("debug", mod=mod).evaluate()(np.int32(5))
    assert [item.numpy().item() for item in found] == [True, 120, 15]


@pytest.mark.parametrize("text", [
    "def @main(%n: int32) { %n * @main(%n) }",
    "def @main(%n: int32) { let %f = fn (%m: int32) { %f(%m) }; %f(%n) }",
])  # fmt: skip
def test_a_recursion_that_never_ends_has_no_type(text: str) -> None:
    with pytest.raises(tvm.error.TypeCheckError, match="recursive function requires a return type"):
        relay.parse(text)

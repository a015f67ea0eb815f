"""Passes that need few words: before and after."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
from tvm.relay import transform

from .common import assert_transforms, assert_unchanged, run, typed


def vec(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(2, 3))


def test_simplify_inference_opens_batch_norm() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8))
    p = [relay.var(n, shape=(4,)) for n in ("g", "b", "m", "v")]
    func = relay.Function([x, *p], relay.nn.batch_norm(x, *p)[0])
    names = relay.analysis.list_op_freqs(
        tvm.IRModule.from_expr(run(func, transform.SimplifyInference()))
    )
    assert "nn.batch_norm" not in names
    assert {"multiply", "add"} <= set(names)


def test_simplify_inference_removes_dropout() -> None:
    before = relay.Function([x := vec()], relay.exp(relay.nn.dropout(x, 0.5)))
    after = relay.Function([y := vec()], relay.exp(y))
    assert_transforms(before, after, transform.SimplifyInference())


def test_dead_code_elimination_drops_unused_lets() -> None:
    x, a, b = vec(), relay.var("a"), relay.var("b")
    before = relay.Function([x], relay.Let(a, relay.exp(x), relay.Let(b, relay.log(a), x)))
    after = relay.Function([y := vec()], y)
    assert_transforms(before, after, transform.DeadCodeElimination())


def test_dead_code_elimination_keeps_effects() -> None:
    x, r, w = vec(), relay.var("r"), relay.var("w")
    body = relay.Let(r, relay.RefCreate(x), relay.Let(w, relay.RefWrite(r, x), relay.RefRead(r)))
    assert_unchanged(relay.Function([x], body), transform.DeadCodeElimination())
    gone = run(
        relay.Function([x], relay.Let(w, relay.RefCreate(x), x)),
        transform.DeadCodeElimination(ignore_impurity=True),
    )
    assert isinstance(gone.body, relay.Var)


def test_dead_code_elimination_keeps_what_matches_and_live_values_read() -> None:
    mod = relay.parse("""
    type Box { Full(float32), Empty, }
    def @main(%x: float32, %b: Box) -> float32 {
      let %y = exp(%x);
      match (%b) { Full(_) => %y, Empty => %x, }
    }""")
    assert transform.DeadCodeElimination()(mod) is mod
    x, a, b = vec(), relay.var("a"), relay.var("b")
    shared = relay.log(a)
    body = relay.Let(a, relay.exp(x), relay.Let(b, relay.tanh(shared), shared))
    after = run(relay.Function([x], body), transform.DeadCodeElimination())
    assert relay.analysis.free_vars(after) == []
    assert isinstance(after.body.body, relay.Call)


def test_dead_code_elimination_inlines_once() -> None:
    x, a = vec(), relay.var("a")
    before = relay.Function([x], relay.Let(a, relay.exp(x), relay.log(a)))
    after = relay.Function([y := vec()], relay.log(relay.exp(y)))
    assert_transforms(before, after, transform.DeadCodeElimination(inline_once=True))


def test_dead_code_elimination_knows_what_functions_do() -> None:
    mod = relay.parse("""
    type Box { Full(float32), Empty, }
    def @loop(%x: float32) -> float32 { @loop(%x) }
    def @write(%x: float32) -> float32 { let %r = ref(%x); ref_read(%r) }
    def @writes(%x: float32) -> float32 { @write(%x) }
    def @unknown(%f: fn (float32) -> float32, %x: float32) -> float32 { let %y = %f(%x); %x }
    def @main(%x: float32) -> Box {
      let %dead = Full(%x);
      let %a = @loop(%x);
      let %b = @writes(%a);
      Full(%b)
    }""")
    after = transform.DeadCodeElimination(inline_once=True)(mod)
    assert isinstance(after["unknown"].body, relay.Let)
    body = after["main"].body
    assert body.var.name_hint == "b" and isinstance(body.body.op, relay.Constructor)
    assert body.value.args[0].op.name_hint == "loop"


def test_common_subexpressions_are_shared() -> None:
    x = vec()
    before = relay.Function([x], relay.exp(x) + relay.exp(x))
    y = vec()
    shared = relay.exp(y)
    after = relay.Function([y], shared + shared)
    assert_transforms(before, after, transform.EliminateCommonSubexpr())


def test_common_subexpressions_respect_attributes_and_fskip() -> None:
    x = vec()
    differ = relay.Function([x], relay.sum(x, axis=0) + relay.sum(x, axis=1, keepdims=True))
    assert_unchanged(differ, transform.EliminateCommonSubexpr())
    x = vec()
    same = relay.Function([x], relay.exp(x) + relay.exp(x))
    skip = transform.EliminateCommonSubexpr(lambda e: isinstance(e, relay.Call))
    assert_unchanged(same, skip)


def test_a_normal_form_and_back() -> None:
    x = vec()
    shared = relay.exp(x)
    func = relay.Function([x], relay.Tuple([shared + shared, shared]))
    normal = run(func, transform.ToANormalForm())
    assert isinstance(normal.body, relay.Let)
    assert_transforms(func, func, transform.ToANormalForm(), transform.ToGraphNormalForm())


def test_a_normal_form_keeps_branches_lazy() -> None:
    x, c = vec(), relay.var("c", "bool")
    func = relay.Function([c, x], relay.If(c, relay.exp(x), relay.exp(relay.log(x))))
    normal = run(func, transform.ToANormalForm())
    branch = normal.body.value
    assert isinstance(branch, relay.If)
    assert isinstance(branch.false_branch, relay.Let)


def test_normal_forms_are_deep() -> None:
    x = vec()
    body: relay.Expr = x
    for _ in range(50_000):
        body = relay.exp(body)
    back = run(relay.Function([x], body), transform.ToANormalForm(), transform.ToGraphNormalForm())
    assert len(relay.analysis.post_order(back)) == 50_003


def test_simplify_expr_merges_reshapes_and_transposes() -> None:
    x = vec()
    before = relay.Function([x], relay.reshape(relay.reshape(x, (6,)), (3, 2)))
    after = relay.Function([y := vec()], relay.reshape(y, (3, 2)))
    assert_transforms(before, after, transform.SimplifyExpr())
    x = vec()
    before = relay.Function([x], relay.transpose(relay.transpose(x)))
    assert_transforms(before, relay.Function([y := vec()], y), transform.SimplifyExpr())


def test_simplify_expr_drops_neutral_operations() -> None:
    x = vec()
    body = (relay.const(1.0) * relay.cast(x, "float32") + relay.const(0.0)) / relay.const(1.0)
    before = relay.Function([x], relay.reshape(body, (2, 3)))
    assert_transforms(before, relay.Function([y := vec()], y), transform.SimplifyExpr())


def test_simplify_expr_keeps_what_broadcasts() -> None:
    x = relay.var("x", shape=(3,))
    zeros = relay.const(np.zeros((2, 3), "float32"))
    assert_unchanged(relay.Function([x], x + zeros), transform.SimplifyExpr())


def test_canonicalize_ops_writes_bias_add_as_add() -> None:
    x, b = relay.var("x", shape=(1, 4, 8, 8)), relay.var("b", shape=(4,))
    before = relay.Function([x, b], relay.nn.bias_add(x, b))
    x, b = relay.var("x", shape=(1, 4, 8, 8)), relay.var("b", shape=(4,))
    after = relay.Function([x, b], x + relay.expand_dims(b, 1, 2))
    assert_transforms(before, after, transform.CanonicalizeOps())


def test_inline_replaces_marked_functions() -> None:
    f, x, y = relay.GlobalVar("f"), vec("x"), vec("y")
    mod = tvm.IRModule({f: relay.Function([x], relay.exp(x)).with_attr("Inline", 1)})
    mod["main"] = relay.Function([y], f(relay.log(y)))
    mod = transform.Inline()(transform.InferType()(mod))
    assert "f" not in mod
    assert mod["main"].body.op.name == "exp"


def test_inlined_bodies_share_no_variables() -> None:
    f, x, a = relay.GlobalVar("f"), vec("x"), relay.var("a")
    body = relay.Let(a, relay.exp(x), a + a)
    mod = tvm.IRModule({f: relay.Function([x], body).with_attr("Inline", 1)})
    y, z = vec("y"), vec("z")
    mod["main"] = relay.Function([y, z], relay.Tuple([f(y), f(z)]))
    mod = transform.ToGraphNormalForm()(transform.Inline()(mod))
    y, z = vec("y"), vec("z")
    e, g = relay.exp(y), relay.exp(z)
    expected = relay.Function([y, z], relay.Tuple([e + e, g + g]))
    tvm.ir.assert_structural_equal(mod["main"], typed(expected)["main"])


def test_a_function_in_place_is_applied() -> None:
    a, y = vec("a"), vec("y")
    before = relay.Function([y], relay.Call(relay.Function([a], a + a), [relay.exp(y)]))
    y = vec("y")
    e = relay.exp(y)
    assert_transforms(before, relay.Function([y], e + e), transform.ApplyFunctions())


def test_remove_unused_functions() -> None:
    f, x, y = relay.GlobalVar("f"), vec("x"), vec("y")
    mod = tvm.IRModule({f: relay.Function([x], x)})
    mod["main"] = relay.Function([y], y)
    assert "f" not in transform.RemoveUnusedFunctions()(mod)
    assert "f" in transform.RemoveUnusedFunctions(["main", "f"])(mod)


def test_function_pass_decorator_of_function_and_class() -> None:
    @transform.function_pass(opt_level=1)
    def to_log(func: relay.Function, mod: tvm.IRModule, ctx: object) -> relay.Function:
        return relay.Function(func.params, relay.log(func.body))

    @transform.function_pass(opt_level=1)
    class Twice:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def transform_function(
            self, func: relay.Function, mod: tvm.IRModule, ctx: object
        ) -> relay.Function:
            return relay.Function(func.params, func.body * relay.const(self.factor))

    x = vec()
    mod = Twice(2.0)(to_log(typed(relay.Function([x], x))))
    assert mod["main"].body.op.name == "multiply"
    assert mod["main"].checked_type is not None


def test_legalize_uses_the_operators_facet() -> None:
    x = vec()
    op = tvm.ir.Op.get("exp")
    op.set_attr("FTestLegalize", lambda attrs, inputs, types: relay.log(inputs[0]))
    try:
        func = run(relay.Function([x], relay.exp(x)), transform.Legalize("FTestLegalize"))
    finally:
        op.reset_attr("FTestLegalize")
    assert func.body.op.name == "log"


def test_applied_polymorphic_functions_have_the_types_of_the_call() -> None:
    mod = relay.parse("""
        def @main(%x: float32) {
          fn [A](%a: A) -> (A, A) { fn (%b: A) -> (A, A) { (%b, %a) }(%a) }(%x)
        }
    """)
    body = relay.transform.ApplyFunctions()(mod)["main"].body
    tvm.ir.assert_structural_equal(body, relay.Tuple([mod["main"].params[0]] * 2))
    inner = relay.parse("""
        def @keep[A](%a: A, Inline=1) -> fn(A) -> A { fn (%b: A) -> A { %a } }
        def @main(%x: float32) { @keep(%x) }
    """)
    kept = relay.transform.Inline()(inner)["main"].body
    assert kept.checked_type == relay.FuncType([relay.scalar_type("float32")] * 1, kept.ret_type)
    assert kept.ret_type == relay.scalar_type("float32")

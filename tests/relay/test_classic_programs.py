"""Short programs in the manner of classic ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import IRModule, relay
from tvm.ir import assert_structural_equal
from tvm.relay import analysis, transform
from tvm.relay.dataflow_pattern import dominates, is_op, wildcard
from tvm.relay.testing import count_ops, run_infer_type, run_opt_pass
from tvm.relay.testing.nat import count, make_nat_expr
from tvm.relay.testing.temp_op_attr import TempOpAttr

Tensor = relay.TensorType


def module(text: str) -> IRModule:
    return relay.fromtext('#[version = "0.0.5"]\n' + text)


def var(name: str, *shape: int, dtype: str = "float32") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


# -- passes


def test_values_used_once_are_inlined() -> None:
    x, y = var("x", 10, 10), relay.Var("y")
    func = relay.Function([x], relay.Let(y, x + x, y + relay.const(1.0)))
    assert "let" not in str(run_opt_pass(func, transform.DeadCodeElimination(inline_once=True)))


def test_recursive_functions_are_no_dead_code() -> None:
    mod = module(
        """
        def @f(%n: int32, %data: float32) -> float32 {
          if (%n == 0) { %data } else { @f(%n - 1, log(%data)) }
        }
        def @main() -> float32 { @f(2, 10000f) }
        """
    )
    passes = [transform.InferType(), transform.DeadCodeElimination()]
    assert len(tvm.transform.Sequential(passes)(mod).functions) == 2


def test_effects_are_no_dead_code() -> None:
    cell, nothing = relay.var("cell"), relay.var("_")
    write = relay.Let(nothing, relay.RefWrite(cell, relay.const(2)), relay.RefRead(cell))
    func = relay.Function([], relay.Let(cell, relay.RefCreate(relay.const(1)), write))
    assert "ref_write" in str(run_opt_pass(func, transform.DeadCodeElimination()))
    ignoring = transform.DeadCodeElimination(ignore_impurity=True)
    assert "ref_write" not in str(run_opt_pass(func, ignoring))


def test_elementwise_operators_become_one_primitive_function() -> None:
    def body(x: relay.Expr) -> relay.Expr:
        return relay.squeeze(relay.exp(relay.add(x, relay.const(1, "float32"))))

    x, p, y = var("x", 10, 20), var("p", 10, 20), var("y", 10, 20)
    fused = run_opt_pass(relay.Function([x], body(x)), transform.FuseOps())
    inner = relay.Function([p], body(p)).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    assert_structural_equal(fused, run_infer_type(relay.Function([y], relay.Call(inner, [y]))))
    assert_structural_equal(
        run_opt_pass(fused, transform.DefuseOps()), run_infer_type(relay.Function([x], body(x)))
    )


def test_fused_functions_have_a_largest_size() -> None:
    x = y = var("x", 10, 20)
    for _ in range(400):
        y = relay.exp(y)
    with tvm.transform.PassContext(config={"relay.FuseOps.max_depth": 100}):
        call = run_opt_pass(relay.Function([x], y), transform.FuseOps(fuse_opt_level=2)).body
    kernels = 0
    while isinstance(call, relay.Call):
        kernels, call = kernels + 1, call.args[0]
    assert kernels >= 4


def test_expressions_may_be_kept_from_being_shared() -> None:
    x = var("x", 1, 16)
    left, right = [relay.add(relay.nn.relu(x), relay.const(1.0)) for _ in range(2)]

    def is_addition(expr: relay.Expr) -> bool:
        return isinstance(expr, relay.Call) and expr.op.name == "add"

    func = relay.Function([x], relay.add(left, right))
    shared = run_opt_pass(func, transform.EliminateCommonSubexpr(is_addition))
    assert count_ops(shared) == {"nn.relu": 1, "add": 3}


def test_data_types_survive_normal_form() -> None:
    mod = IRModule()
    prelude = relay.prelude.Prelude(mod)
    mod.import_from_std("nat.rly")
    add = mod.get_global_var("nat_add")
    mod["main"] = relay.Function([], add(make_nat_expr(prelude, 2), make_nat_expr(prelude, 3)))
    for changed in (mod, transform.ToANormalForm()(mod)):
        assert count(prelude, relay.create_executor("debug", mod=changed).evaluate()()) == 5


def test_fields_of_known_tuples_are_evaluated() -> None:
    x = var("x")
    func = relay.Function([x], relay.TupleGetItem(relay.Tuple([x, x + x]), 0))
    evaluated = run_opt_pass(func, transform.PartialEvaluate())
    found = run_opt_pass(evaluated, transform.DeadCodeElimination())
    assert_structural_equal(found, run_infer_type(relay.Function([x], x)))


def test_operators_are_legalised_as_a_user_says() -> None:
    def legalize(attrs: Any, inputs: Any, types: Any) -> relay.Expr:
        data, weight = inputs
        return relay.nn.conv2d(data, relay.multiply(weight, relay.const(2.0)), **attrs)

    x, w = var("x", 1, 64, 56, 56), var("w", 64, 64, 3, 3)
    conv = relay.nn.conv2d(x, w, channels=64, kernel_size=(3, 3), padding=(1, 1))
    with TempOpAttr("nn.conv2d", "FTVMLegalize", legalize):
        func = run_opt_pass(relay.Function([x, w], relay.nn.relu(conv)), transform.Legalize())
    assert count_ops(func) == {"multiply": 1, "nn.conv2d": 1, "nn.relu": 1}


def test_classes_and_functions_are_passes() -> None:
    @transform.function_pass(opt_level=1)
    class Replace:
        def __init__(self, new: relay.Function) -> None:
            self.new = new

        def transform_function(self, func: Any, mod: Any, ctx: Any) -> relay.Function:
            return self.new

    @tvm.ir.transform.module_pass(opt_level=2, name="double")
    def double(mod: IRModule, ctx: Any) -> IRModule:
        y = var("y", 1)
        mod.update(IRModule({relay.GlobalVar("double"): relay.Function([y], y + y)}))
        return mod

    x = var("x", 1)
    replace = Replace(relay.Function([x], x))
    assert isinstance(replace, transform.FunctionPass)
    assert (replace.info.opt_level, replace.info.name) == (1, "Replace")
    assert isinstance(double, tvm.ir.transform.ModulePass)
    mod = double(replace(IRModule.from_expr(relay.Function([x], relay.log(x)))))
    assert isinstance(mod["main"].body, relay.Var)
    assert {gvar.name_hint for gvar in mod.get_global_vars()} == {"double", "main"}


def test_entry_functions_are_kept() -> None:
    mod = IRModule()
    relay.prelude.Prelude(mod)
    mod["main"] = relay.Function([], relay.const(1.0))
    assert len(transform.RemoveUnusedFunctions()(mod).functions) == 1
    assert "foldl" in transform.RemoveUnusedFunctions(["main", "foldl"])(mod)


# -- instruments


def test_instruments_see_contexts_and_passes() -> None:
    seen: list[str] = []

    @tvm.instrument.pass_instrument
    class Listener:
        def enter_pass_ctx(self) -> None:
            seen.append("enter")

        def exit_pass_ctx(self) -> None:
            seen.append("exit")

        def run_before_pass(self, mod: Any, info: Any) -> None:
            seen.append(f"before {info.name}")

        def run_after_pass(self, mod: Any, info: Any) -> None:
            seen.append(f"after {info.name}")

    with tvm.transform.PassContext(instruments=[Listener()]):
        transform.DivToMul()(IRModule.from_expr(relay.const(1)))
    assert (seen[0], seen[-1]) == ("enter", "exit")
    assert {"before DivToMul", "after DivToMul"} <= set(seen)


def test_instruments_skip_passes_and_raise_errors() -> None:
    @tvm.instrument.pass_instrument
    class Skipper:
        def should_run(self, mod: Any, info: Any) -> bool:
            return info.name != "FoldConstant"

    @tvm.instrument.pass_instrument
    class Stopper:
        def run_before_pass(self, mod: Any, info: Any) -> None:
            raise RuntimeError("no further")

    mod = IRModule.from_expr(relay.const(1.0) + relay.const(2.0))
    fold = tvm.transform.Sequential([transform.InferType(), transform.FoldConstant()])
    with tvm.transform.PassContext(opt_level=3, instruments=[Skipper()]):
        assert isinstance(fold(mod)["main"].body, relay.Call)
    stopping = tvm.transform.PassContext(opt_level=3, instruments=[Stopper()])
    with pytest.raises(RuntimeError, match="no further"), stopping:
        fold(mod)


# -- types


def test_recursion_needs_a_return_type_only() -> None:
    f, n, data = relay.GlobalVar("f"), var("n", dtype="int32"), var("data")
    scope = relay.ScopeBuilder()
    with scope.if_scope(relay.equal(n, relay.const(0))):
        scope.ret(data)
    with scope.else_scope():
        scope.ret(f(relay.subtract(n, relay.const(1)), relay.log(data)))
    mod = transform.InferType()(IRModule({f: relay.Function([n, data], scope.get(), Tensor(()))}))
    assert mod["f"].checked_type == relay.FuncType([Tensor((), "int32"), Tensor(())], Tensor(()))


def test_polymorphic_functions_are_arguments_and_results() -> None:
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    x, f, y = relay.Var("x", a), relay.Var("f", relay.FuncType([b], b)), relay.Var("y", b)
    same = relay.Function([x], x, a, [a])
    apply = relay.Function([f, y], f(y), b, [b])
    assert run_infer_type(apply(same, relay.const(0))).checked_type == Tensor((), "int32")
    maker = run_infer_type(relay.Function([], same, relay.FuncType([b], b), [b]))
    assert maker.checked_type == relay.FuncType([], relay.FuncType([b], b), [b])


def test_let_bound_functions_are_used_at_several_types() -> None:
    a, name = relay.TypeVar("a"), relay.Var("same")
    v = relay.Var("v", a)
    uses = relay.Tuple([name(relay.Tuple([])), name(relay.const(1))])
    body = run_infer_type(relay.Let(name, relay.Function([v], v, a, [a]), uses))
    assert body.checked_type == relay.TupleType([relay.TupleType([]), Tensor((), "int32")])


def test_constructors_build_typed_values() -> None:
    mod = IRModule()
    box, t = relay.GlobalTypeVar("box"), relay.TypeVar("t")
    make = relay.Constructor("make", [t], box)
    mod[box] = relay.TypeData(box, [t], [make])
    mod["main"] = relay.Function([], make(relay.const(1.0)))
    assert transform.InferType()(mod)["main"].checked_type.ret_type == box(Tensor(()))


def test_errors_underline_the_call() -> None:
    x, y = var("x", 2, 3), var("y", 4)
    func = relay.Function([x, y], relay.exp(relay.add(relay.tanh(x), y)))
    with pytest.raises(tvm.error.DiagnosticError, match=r"add\(%0, %y\);?\n +\^+\n"):
        run_infer_type(func)


def test_typed_functions_are_left_alone() -> None:
    x = var("x", 2)
    mod = transform.InferType()(IRModule.from_expr(relay.Function([x], relay.exp(x))))
    assert transform.InferType()(mod) is mod


# -- functors and questions


def test_mutators_rebuild_functions() -> None:
    class Multiplier(relay.ExprMutator):
        def visit_call(self, call: relay.Call) -> relay.Expr:
            if call.op == relay.op.get("add"):
                return relay.multiply(*[self.visit(a) for a in call.args])
            return super().visit_call(call)

    x = var("x", 2)
    assert Multiplier().visit(relay.Function([x], relay.exp(x + x))).body.args[0].op.name == (
        "multiply"
    )


def test_types_are_visited_and_rebuilt() -> None:
    class Counter(relay.TypeVisitor):
        count = 0

        def visit_tensor_type(self, ty: relay.TensorType) -> None:
            self.count += 1

    class Narrower(relay.TypeMutator):
        def visit_tensor_type(self, ty: relay.TensorType) -> relay.Type:
            return Tensor(ty.shape, "int8")

    ty = relay.FuncType([relay.TupleType([Tensor((1,))])], relay.RefType(Tensor((3,))))
    counter = Counter()
    counter.visit(ty)
    assert counter.count == 2
    narrow = relay.FuncType(
        [relay.TupleType([Tensor((1,), "int8")])], relay.RefType(Tensor((3,), "int8"))
    )
    assert Narrower().visit(ty) == narrow


def test_variables_are_free_or_bound_once() -> None:
    a, b, c = [relay.Var(name) for name in "abc"]
    let = relay.Let(a, b, c)
    assert [v.name_hint for v in analysis.free_vars(let)] == ["b", "c"]
    assert analysis.bound_vars(let)[0] is a
    assert len(analysis.all_vars(let)) == 3
    once = relay.Let(a, relay.const(1.0), a)
    assert analysis.well_formed(once)
    assert not analysis.well_formed(relay.Let(a, once, a))


def test_callers_are_counted() -> None:
    f, x = relay.GlobalVar("f"), var("x")
    mod = IRModule({f: relay.Function([x], x)})
    mod["main"] = relay.Function([x], f(x))
    graph = analysis.CallGraph(transform.InferType()(mod))
    assert (graph.global_call_count("main"), graph.ref_count("f")) == (1, 1)
    assert not graph.is_recursive("f")


def test_prelude_functions_are_iterated_and_composed() -> None:
    prelude = relay.prelude.Prelude(IRModule())
    x, y = relay.Var("x"), var("y", dtype="int32")
    double = relay.Function([x], x * relay.const(2))
    for made, wanted in (
        (prelude.iterate(double, relay.const(3)), 16),
        (prelude.compose(double, double), 8),
    ):
        func = relay.Function([y], relay.Call(made, [y]))
        run = relay.create_executor("debug", mod=prelude.mod).evaluate(func)
        assert int(run(np.int32(2)).numpy()) == wanted


def test_dominators_are_found() -> None:
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    between = wildcard().has_attr({"TOpPattern": relay.op.OpPattern.ELEMWISE})(wildcard())
    pattern = dominates(conv, between, is_op("add")(wildcard(), wildcard()))
    x, w = relay.var("x"), relay.var("w")
    value = relay.nn.conv2d(x, w)
    assert pattern.match(relay.nn.relu(value) + relay.tanh(value))
    assert not pattern.match(relay.nn.relu(value) + relay.tanh(x))


def test_metadata_is_given_to_the_parser() -> None:
    table = relay.const(np.ones((2, 3), "float32"))
    text = '#[version = "0.0.5"]\ndef @main() { meta[relay.Constant][0] }'
    mod = relay.parse(text, "in.rly", None, {"relay.Constant": [table]})
    assert_structural_equal(mod["main"].body, table)


def test_widths_of_borders_may_be_constants() -> None:
    x = var("x", 2, 3)
    padded = relay.nn.pad(x, relay.const([[1, 1], [0, 2]]))
    assert padded.attrs.pad_width == ((1, 1), (0, 2))

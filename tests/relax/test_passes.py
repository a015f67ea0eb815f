"""Passes: what programs are before and after."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.ir.transform import Sequential
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Before:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tensor(
        ("n", 4), "float32"
    ):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            c = R.multiply(b, R.const(2.0, "float32"))
            R.output(c)
        return c


FUSION = Sequential(
    [
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
    ]
)


def run(mod: tvm.IRModule, *args: np.ndarray) -> np.ndarray:
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(a) for a in args]).numpy()


def test_elementwise_calls_become_one_loop_program() -> None:
    fused = FUSION(Before)
    assert relax.analysis.well_formed(fused)
    assert [g.name_hint for g in fused.functions if g.name_hint != "main"] == [
        "fused_add_tir_exp_multiply"
    ]
    (binding,) = fused["main"].body.blocks[0].bindings
    assert binding.value.op == tvm.ir.Op.get("relax.call_tir")
    x, y = [np.random.default_rng(i).random((3, 4), "float32") for i in (0, 1)]
    np.testing.assert_allclose(run(fused, x, y), np.exp(x + y) * 2, rtol=1e-5)


def test_calls_of_constants_are_computed() -> None:
    @I.ir_module
    class Constants:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            with R.dataflow():
                a = R.add(R.const([1.0, 2.0], "float32"), R.const([3.0, 4.0], "float32"))
                b = R.multiply(x, a)
                R.output(b)
            return b

    folded = transform.FoldConstant()(Constants)
    value = folded["main"].body.blocks[0].bindings[-1].value.args[1]
    assert isinstance(value, relax.Constant) and list(value.data.numpy()) == [4.0, 6.0]


def test_equal_values_are_computed_once() -> None:
    @I.ir_module
    class Twice:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(x)
                c = R.add(a, b)
                R.output(c)
            return c

    @I.ir_module
    class Once:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            with R.dataflow():
                a = R.exp(x)
                c = R.add(a, a)
                R.output(c)
            return c

    assert_structural_equal(
        Sequential([transform.EliminateCommonSubexpr(), transform.CanonicalizeBindings()])(Twice),
        Once,
    )


def test_trivial_bindings_go_away() -> None:
    @I.ir_module
    class Trivial:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            with R.dataflow():
                a = x
                t = (a, R.exp(a))
                b = t[1]
                R.output(b)
            return b

    func = transform.CanonicalizeBindings()(Trivial)["main"]
    assert [str(b.value.op.name) for b in func.body.blocks[0].bindings] == ["relax.exp"]


def test_variables_of_a_dataflow_block_stay_in_it() -> None:
    """Behind the block a field of an output tuple stands for no variable that only the block sees."""

    @I.ir_module
    class Fields:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                lv = R.negative(x)
                gv = (R.add(x, x), lv)
                R.output(gv)
            return R.negative(gv[1])

    mod = transform.CanonicalizeBindings()(Fields)
    assert relax.analysis.well_formed(mod)
    machine = relax.VirtualMachine(relax.build(mod, "llvm", exec_mode="compiled"), tvm.cpu())
    x = np.array([1, -2], "float32")
    np.testing.assert_array_equal(machine["main"](tvm.nd.array(x)).numpy(), x)


def test_what_nothing_uses_goes_away() -> None:
    @I.ir_module
    class Unused:
        @R.function(private=True)
        def helper(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.exp(x)

        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = Unused.helper(x)
            return R.add(x, x)

    mod = transform.DeadCodeElimination()(Unused)
    assert [g.name_hint for g in mod.functions] == ["main"]
    assert len(mod["main"].body.blocks[0].bindings) == 1


def test_parameters_are_bound_to_values() -> None:
    @I.ir_module
    class Scaled:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32")) -> R.Tensor(
            ("n",), "float32"
        ):
            return R.multiply(x, w)

    mod = transform.BindParams("main", {"w": np.array([1, 2], "float32")})(Scaled)
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    assert mod["main"].ret_struct_info == relax.TensorStructInfo((2,))
    fixed = transform.BindSymbolicVars({"n": 3})(Scaled)
    assert fixed["main"].params[0].struct_info == relax.TensorStructInfo((3,))


def test_ill_formed_programs_are_told() -> None:
    x = relax.Var("x", relax.TensorStructInfo((2,)))
    y = relax.Var("y", relax.TensorStructInfo((2,)))
    func = relax.Function([x], relax.SeqExpr([], y), y.struct_info)
    assert not relax.analysis.well_formed(func)
    assert relax.analysis.well_formed(Before)


def test_mutators_rewrite_calls() -> None:
    @relax.expr_functor.mutator
    class AddToMultiply(relax.PyExprMutator):
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            call = self.visit_expr_post_order(call)
            is_add = call.op == tvm.ir.Op.get("relax.add")
            return relax.op.multiply(*call.args) if is_add else call

    func = AddToMultiply().visit_expr(Before["main"])
    names = [b.value.op.name for b in func.body.blocks[0].bindings]
    assert names == ["relax.multiply", "relax.exp", "relax.multiply"]

"""Passes of a page: the smallest program that each changes."""

from __future__ import annotations

import pytest

import tvm
from tvm import relax, topi
from tvm.error import DiagnosticError
from tvm.ir import Op, assert_structural_equal
from tvm.relax import transform
from tvm.relax.expr import update_struct_info
from tvm.relax.transform.legalize_ops.common import register_legalize
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Doubles:
    @T.prim_func(private=True)
    def double(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
        for i in range(2):
            B[i] = A[i] * 2.0

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Doubles
        return R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((2,), "float32"))


def _calls(func: relax.Function) -> list[str]:
    found = []
    for block in func.body.blocks:
        for binding in block.bindings:
            op = getattr(binding.value, "op", None)
            if op is not None:
                found.append(getattr(op, "name", None) or op.name_hint)
    return found


def test_call_tir_rewrite_allocates_the_result() -> None:
    after = transform.CallTIRRewrite()(transform.RemovePurityChecking()(Doubles))
    assert _calls(after["main"]) == ["relax.builtin.alloc_tensor", "double"]


def test_remove_purity_checking_forces_purity_of_pure_functions_only() -> None:
    @I.ir_module
    class Before:
        @R.function(pure=False)
        def loud(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            _ = R.print(x, format="{}")
            return x

        @R.function
        def quiet(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return x

    after = transform.RemovePurityChecking()(Before)
    assert after["quiet"].attrs["relax.force_pure"]
    assert after["loud"] is Before["loud"]


def test_lambda_lift_makes_functions_of_the_module() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            @R.function
            def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                return R.add(y, y)

            return inner(x)

    after = transform.LambdaLift()(Before)
    assert len(after.functions) == 2
    kinds = [type(b.value) for block in after["main"].body.blocks for b in block.bindings]
    assert relax.Function not in kinds


def test_to_non_dataflow_leaves_plain_blocks() -> None:
    @R.function
    def before(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y

    after = transform.ToNonDataflow()(tvm.IRModule({"before": before}))["before"]
    assert not any([isinstance(b, relax.DataflowBlock) for b in after.body.blocks])


@pytest.mark.parametrize(
    "make", [transform.LambdaLift, transform.ToNonDataflow, transform.CanonicalizeBindings]
)
def test_nothing_to_do_leaves_the_program(make: type) -> None:
    assert_structural_equal(make()(Doubles), Doubles)


@pytest.mark.parametrize(("indices", "dtype"), [([0, 0], "float32"), (-1, "float32"), (0, "int32")])
def test_in_place_results_must_fit(indices: object, dtype: str) -> None:
    x = relax.Var("x", relax.TensorStructInfo([2], "float32"))
    func = relax.GlobalVar("f")
    out = relax.TensorStructInfo([2], dtype)
    infos = [out, out] if isinstance(indices, list) else out
    call = relax.op.call_tir_inplace(func, x, indices, infos)
    with pytest.raises((DiagnosticError, tvm.TVMError), match="inplace|input"):
        relax.BlockBuilder().normalize(call)


def test_loop_programs_call_functions_by_their_normalized_names() -> None:
    @I.ir_module(check_well_formed=False)
    class Before:
        @T.prim_func(private=True)
        def f1(x: T.int32) -> T.int32:
            return x + 1

        @T.prim_func
        def f(x: T.int32) -> T.int32:
            T.func_attr({"global_symbol": "f1"})
            return Before.f1(x)

    after = transform.NormalizeGlobalVar()(Before)
    called = []
    tvm.tir.stmt_functor.post_order_visit(
        after["f1"].body,
        lambda node: called.append(node.op) if isinstance(node, tvm.tir.Call) else None,
    )
    (private,) = set(after.get_global_vars()) - {after.get_global_var("f1")}
    assert private in called


def test_values_of_variables_count_for_patterns_of_loop_programs() -> None:
    @I.ir_module
    class Before:
        @T.prim_func
        def sums(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
            for i, k in T.grid(8, 4):
                with T.block("sum"):
                    v, r = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[v] = T.float32(0)
                    total: T.float32 = B[v] + A[v, r]
                    B[v] = total

    after = transform.AnnotateTIROpPattern()(Before)
    assert after["sums"].attrs["op_pattern"] == 3, "a reduction"


def test_a_legalisation_may_be_registered_before_its_operator() -> None:
    @register_legalize("sample.twice")
    def twice(bb: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        return bb.call_te(topi.add, call.args[0], call.args[0])

    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        call = relax.Call(Op.get("sample.twice"), [x])
        update_struct_info(call, x.struct_info)
        bb.emit_func_output(bb.emit(call))
    mod = relax.transform.LegalizeOps()(bb.finalize())
    assert "add" in [gvar.name_hint for gvar in mod.get_global_vars()]


def test_legalize_ops_requires_known_dtypes() -> None:
    @I.ir_module
    class Untyped:
        @R.function
        def main(A: R.Tensor([16, 32]), B: R.Tensor([32, 8])) -> R.Tensor([16, 8]):
            return R.matmul(A, B)

    with pytest.raises(AssertionError, match=r"^To legalize R\.matmul, the data types") as caught:
        transform.LegalizeOps()(Untyped)
    assert "R.Tensor(shape, dtype)" in str(caught.value)

"""Changing the bindings of one dataflow block."""

from __future__ import annotations

import pytest

import tvm
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax.binding_rewrite import DataflowBlockRewrite
from tvm.script import relax as R


@R.function
def func(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.negative(x)
        c = R.add(a, a)
        d = R.log(c)
        R.output(c)
    return c


BLOCK = func.body.blocks[0]
A, B, C, D = [b.var for b in BLOCK.bindings]


def names(rewrite: DataflowBlockRewrite) -> list[str]:
    return [b.var.name_hint for b in rewrite.mutated_dfb().bindings]


def test_bindings_are_added() -> None:
    rewrite = DataflowBlockRewrite(BLOCK, func)
    rewrite.add(R.abs(R.exp(x := func.params[0])), name="e", is_dfvar=True)
    rewrite.add(x)
    rewrite.add(x, is_dfvar=True)
    rewrite.add_binding(relax.VarBinding(relax.DataflowVar("f", x.struct_info), x))
    assert names(rewrite) == ["a", "b", "c", "d", "lv", "e", "gv", "lv1", "f"]
    kinds = [type(b.var) for b in rewrite.mutated_dfb().bindings[5:8]]
    assert kinds == [relax.DataflowVar, relax.Var, relax.DataflowVar]
    new = rewrite.mutated_root_fn()
    assert new.body.blocks[0] is rewrite.mutated_dfb()
    assert relax.analysis.well_formed(tvm.IRModule({"func": new}))
    assert len(func.body.blocks[0].bindings) == 4
    with pytest.raises(tvm.TVMError, match="called 'a' already"):
        rewrite.add(x, name="a")


def test_uses_are_replaced() -> None:
    @R.function
    def expected(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            b = R.negative(x)
            c = R.add(b, b)
            R.output(c)
        return c

    rewrite = DataflowBlockRewrite(BLOCK, func)
    rewrite.replace_all_uses(A, B)
    rewrite.remove_unused(A)
    rewrite.remove_all_unused()
    assert names(rewrite) == ["b", "c"]
    assert_structural_equal(rewrite.mutated_root_fn(), expected.with_attr("global_symbol", "func"))


def test_what_is_used_stays() -> None:
    rewrite = DataflowBlockRewrite(BLOCK, func)
    with pytest.raises(tvm.TVMError, match="nothing uses"):
        rewrite.remove_unused(A)
    with pytest.raises(tvm.TVMError, match="variable of the block"):
        rewrite.remove_unused(relax.Var("y"))
    rewrite.remove_unused(relax.Var("y"), allow_undef=True)
    assert rewrite.mutated_root_fn() is func
    rewrite.remove_unused(D)
    assert names(rewrite) == ["a", "b", "c"]


def test_modules() -> None:
    module = tvm.IRModule({"func": func})
    rewrite = DataflowBlockRewrite(BLOCK, func)
    rewrite.remove_all_unused()
    new = rewrite.mutate_irmodule(module)
    assert len(new["func"].body.blocks[0].bindings) == 2
    assert module["func"] is func
    with pytest.raises(tvm.TVMError, match="has the function"):
        rewrite.mutate_irmodule(new)
    with pytest.raises(tvm.TVMError, match="a block of the function"):
        DataflowBlockRewrite(relax.DataflowBlock([]), func)

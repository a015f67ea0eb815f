from __future__ import annotations

import tvm
from tvm import relay
from tvm.relay.testing.byoc import CcompilerAnnotator
from tvm.relay.transform import PartitionGraph


def test_chain_of_sum_difference_and_product_is_a_region() -> None:
    a, b, c, d = [relay.var(name, shape=(2,)) for name in "abcd"]
    body = relay.exp(relay.multiply(relay.subtract(relay.add(a, b), c), d))
    func = CcompilerAnnotator().visit(relay.Function([a, b, c, d], body))
    mod = PartitionGraph()(tvm.IRModule.from_expr(func))
    (region,) = [f for f in mod.functions.values() if f.attrs.get("Compiler") == "ccompiler"]
    counts = relay.analysis.list_op_freqs(tvm.IRModule.from_expr(region))
    assert counts == {"add": 1, "subtract": 1, "multiply": 1}


def test_other_products_are_left() -> None:
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    marked = CcompilerAnnotator().visit(relay.Function([a, b], relay.exp(a) * relay.tanh(b)))
    assert "compiler_end" not in str(marked)

"""Small ONNX models to verify, and compilers that are broken on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tvm import relay
from tvm.ir.op import Op


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    weights: Mapping[str, np.ndarray] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """A model whose inputs have the types of the given arrays."""
    graph = helper.make_graph(
        list(nodes),
        "model",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def tower(depth: int = 6) -> onnx.ModelProto:
    """Layers of MatMul, Add and Tanh, one after the other; tensors mul0, add0, tanh0, mul1, ..."""
    random = np.random.default_rng(1)
    nodes, weights, last = [], {}, "x"
    for i in range(depth):
        weights[f"w{i}"] = random.normal(size=(8, 8)).astype("float32") / 2
        weights[f"b{i}"] = random.normal(size=(8,)).astype("float32")
        nodes += [
            helper.make_node("MatMul", [last, f"w{i}"], [f"mul{i}"], name=f"layer{i}/matmul"),
            helper.make_node("Add", [f"mul{i}", f"b{i}"], [f"add{i}"], name=f"layer{i}/add"),
            helper.make_node("Tanh", [f"add{i}"], [f"tanh{i}"], name=f"layer{i}/tanh"),
        ]
        last = f"tanh{i}"
    return model_of(nodes, {"x": np.zeros((4, 8), "float32")}, [last], weights)


@contextmanager
def facet(name: str, **facets: Any) -> Iterator[None]:
    """Give an operator other facets for a while."""
    op = Op.get(name)
    before = {key: getattr(op, key) for key in facets}
    op.set_facets(**facets)
    try:
        yield
    finally:
        op.set_facets(**before)


def rewriting(
    name: str,
    rewrite: Callable[[relay.Call], relay.Expr | None],
    applies: Callable[[relay.Function], bool] = lambda _: True,
) -> Any:
    """A pass of that name that replaces calls for which ``rewrite`` has an answer."""

    class Mutator(relay.ExprMutator):
        def visit_call(self, call: relay.Call) -> relay.Expr:
            new = super().visit_call(call)
            return rewrite(new) or new

    return relay.transform.function_pass(
        lambda func, mod, ctx: Mutator().visit(func) if applies(func) else func,
        opt_level=1,
        name=name,
    )

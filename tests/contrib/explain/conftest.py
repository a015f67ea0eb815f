from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import explain
from tvm.relay.backend.graph import Graph
from tvm.relay.backend.memory_plan import StoragePlan, plan_memory
from tvm.script import ir as I
from tvm.script import relax as R

# what a model may be called, to no avail
EVIL = '</script><script>document.title="taken"</script><b id=evil>'


def small_model() -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    """A convolution with what fuses behind it, pooling, a product and softmax."""
    x = relay.var("x", shape=(1, 3, 12, 12))
    weight, bias = relay.var("weight", shape=(8, 3, 5, 5)), relay.var("bias", shape=(8,))
    dense = relay.var("dense", shape=(10, 8))
    conv = relay.nn.conv2d(x, weight, strides=(2, 2), channels=8, kernel_size=5)
    pooled = relay.nn.global_avg_pool2d(relay.nn.relu(relay.nn.bias_add(conv, bias)))
    scores = relay.nn.dense(relay.nn.batch_flatten(pooled), dense)
    mod = tvm.IRModule.from_expr(relay.Function([x, weight, bias, dense], relay.nn.softmax(scores)))
    random = np.random.default_rng(0)
    shapes = {"weight": (8, 3, 5, 5), "bias": (8,), "dense": (10, 8)}
    params = {name: random.normal(size=s).astype("float32") for name, s in shapes.items()}
    return mod, params


def small_relax_model() -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    """The same in relax, with an operator behind it that the kernel library does not have."""

    @I.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tensor((1, 3, 12, 12), "float32"),
            weight: R.Tensor((8, 3, 5, 5), "float32"),
            bias: R.Tensor((1, 8, 1, 1), "float32"),
            dense: R.Tensor((8, 10), "float32"),
        ) -> R.Tensor((1, 10), "float32"):
            with R.dataflow():
                conv = R.nn.conv2d(x, weight, strides=(2, 2))
                added = R.add(conv, bias)
                positive = R.nn.relu(added)
                pooled = R.nn.adaptive_avg_pool2d(positive, output_size=(1, 1))
                row = R.reshape(pooled, (1, 8))
                scores = R.matmul(row, dense)
                shares = R.nn.softmax(scores)
                sums = R.cumsum(shares, axis=1)
                result = R.multiply(sums, shares)
                R.output(result)
            return result

    random = np.random.default_rng(0)
    shapes = {"weight": (8, 3, 5, 5), "bias": (1, 8, 1, 1), "dense": (8, 10)}
    return Module, {name: random.normal(size=s).astype("float32") for name, s in shapes.items()}


@pytest.fixture(scope="session")
def relax_report() -> explain.Report:
    mod, params = small_relax_model()
    return explain.explain(mod, params, "llvm", name=EVIL, repeat=1, detailed=9)


@pytest.fixture(scope="session")
def plans() -> list[tuple[Graph, StoragePlan]]:
    return []


@pytest.fixture(scope="session")
def report(plans: list[tuple[Graph, StoragePlan]]) -> explain.Report:
    mod, params = small_model()
    plans.clear()  # of a report that another module's fixture of this name asked for
    with tvm.transform.PassContext(opt_level=3), pytest.MonkeyPatch.context() as patch:

        def noted(graph: Graph) -> StoragePlan:
            plans.append((graph, plan_memory(graph)))
            return plans[-1][1]

        patch.setattr("tvm.relay.backend.build_graph.plan_memory", noted)
        return explain.explain(mod, params, "llvm", name=EVIL, repeat=1, detailed=2)

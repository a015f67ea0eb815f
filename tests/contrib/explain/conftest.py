from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import explain
from tvm.relay.backend.graph import Graph
from tvm.relay.backend.memory_plan import StoragePlan, plan_memory

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


@pytest.fixture(scope="session")
def plans() -> list[tuple[Graph, StoragePlan]]:
    return []


@pytest.fixture(scope="session")
def report(plans: list[tuple[Graph, StoragePlan]]) -> explain.Report:
    mod, params = small_model()
    with tvm.transform.PassContext(opt_level=3), pytest.MonkeyPatch.context() as patch:

        def noted(graph: Graph) -> StoragePlan:
            plans.append((graph, plan_memory(graph)))
            return plans[-1][1]

        patch.setattr("tvm.relay.backend.build_graph.plan_memory", noted)
        return explain.explain(mod, params, "llvm", name=EVIL, repeat=1, detailed=2)

"""Kernels that differ in numbers alone become one."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.function import is_primitive
from tvm.relay.transform import FuseOps, InferType, ShareKernels
from tvm.relay.traverse import post_order

SCALES = (0.5, 0.3, 0.25, 0.125, 0.3)


def chain(scales: tuple[float, ...], dtype: str = "float32") -> tvm.IRModule:
    """A product with weights between two scalings, again and again."""
    x = relay.var("x", shape=(4, 8), dtype=dtype)
    y, weight = x, relay.const(np.eye(8, dtype=dtype))
    for scale in scales:
        number = relay.const(scale, dtype)
        y = relay.clip(relay.nn.dense(y, weight) / number + relay.const(1, dtype), 0, 6)
    return tvm.IRModule.from_expr(relay.Function([x], y))


def kernels(mod: tvm.IRModule) -> list[relay.Function]:
    """Those that differ, after fusion and sharing."""
    with tvm.transform.PassContext(opt_level=3):
        for step in (InferType(), FuseOps(), ShareKernels()):
            mod = step(mod)
    nodes = post_order(mod["main"], is_opaque=is_primitive)
    found = [n.op for n in nodes if isinstance(n, relay.Call) and is_primitive(n.op)]
    # equal ones are one object
    assert len({id(k) for k in found}) == len({tvm.ir.structural_hash(k) for k in found})
    return list({id(kernel): kernel for kernel in found}.values())


def test_only_numbers_that_differ_become_parameters() -> None:
    (kernel,) = kernels(chain(SCALES))
    assert [tuple(p.checked_type.shape) for p in kernel.params] == [(4, 8), (8, 8), ()]


def test_few_kernels_keep_their_numbers() -> None:
    assert len(kernels(chain(SCALES[:3]))) == 3


def test_quotients_of_integers_keep_their_numbers() -> None:
    assert len(kernels(chain((2, 3, 5, 7, 9), "int32"))) == 5


def test_linked_numbers_stay_in_the_code() -> None:
    with tvm.transform.PassContext(config={"relay.FuseOps.link_params": True}):
        mod = InferType()(FuseOps()(chain(SCALES)))
        assert ShareKernels()(mod) is mod or tvm.ir.structural_equal(ShareKernels()(mod), mod)


@pytest.mark.parametrize("executor", ["graph", "aot", "vm"])
def test_results_are_those_of_kernels_of_their_own(executor: str) -> None:
    mod = chain(SCALES)
    x = np.random.default_rng(0).normal(size=(4, 8)).astype("float32")
    results = []
    for disabled in ([], ["ShareKernels"]):
        with tvm.transform.PassContext(opt_level=3, disabled_pass=disabled):
            made = relay.create_executor(executor, mod, tvm.cpu(), "llvm").evaluate()
            results.append(made(x).numpy())
    np.testing.assert_array_equal(*results)


def test_a_built_model_has_one_kernel_for_all_layers() -> None:
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(chain(SCALES), "llvm")
    assert len(lib.function_metadata) == 2  # and the model itself
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.zeros((4, 8), "float32"))
    assert module.get_output(0).shape == (4, 8)


def test_kernels_of_dynamic_shapes_keep_their_own_size_variables() -> None:
    x, y = [relay.var(name, shape=(relay.Any(), 6), dtype="float32") for name in "xy"]
    sums = [relay.sqrt(relay.sum(v * v, axis=1)) for v in (x, y)]
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple(sums)))
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    arrays = [np.full((rows, 6), rows, "float32") for rows in (2, 3)]
    for found, array in zip(call(*arrays), arrays, strict=True):
        np.testing.assert_allclose(found.numpy(), np.linalg.norm(array, axis=1), rtol=1e-6)

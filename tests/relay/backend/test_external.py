"""Functions of an external compiler run beside our own kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import cc, graph_executor
from tvm.ir import register_op_attr
from tvm.ir.transform import Sequential
from tvm.relay.transform import AnnotateTarget, MergeCompilerRegions, PartitionGraph
from tvm.relay.traverse import post_order

C_OPERATORS = {"add": "{0} + {1}", "multiply": "{0} * {1}", "subtract": "{0} - {1}"}

HEAD = """
#include <stdint.h>
typedef union { int64_t i; double f; void* p; } Value;
extern "C" {
typedef struct { int32_t type, id; } Device;
typedef struct { void* data; Device device; int32_t ndim; uint32_t dtype;
                 int64_t* shape; int64_t* strides; uint64_t byte_offset; } Tensor;
"""


def c_source(func: relay.Function) -> str:
    """One loop over elements of tensors of one shape."""
    names = {id(p): f"in{i}[k]" for i, p in enumerate(func.params)}
    lines = []
    for node in post_order(func.body):
        if isinstance(node, relay.Call):
            text = C_OPERATORS[node.op.name].format(*[names[id(a)] for a in node.args])
            names[id(node)] = f"t{len(lines)}"
            lines.append(f"    float t{len(lines)} = {text};")
    count = len(func.params)
    tensors = [f"  float* in{i} = (float*)((Tensor*)args[{i}].p)->data;" for i in range(count)]
    size = int(np.prod(func.checked_type.ret_type.concrete_shape))
    return "\n".join([
        HEAD,
        f"int {func.attrs['global_symbol']}(Value* args, int* codes, int n, Value* r, int* c, void* h) {{",
        *tensors,
        f"  float* out = (float*)((Tensor*)args[{count}].p)->data;",
        f"  for (int64_t k = 0; k < {size}; ++k) {{",
        *lines,
        f"    out[k] = {names[id(func.body)]};",
        "  }",
        "  return 0;",
        "}}",
    ])  # fmt: skip


@pytest.fixture
def compiler(tmp_path: Path) -> Iterator[None]:
    def generate(func: relay.Function) -> tvm.runtime.Module:
        base = tmp_path / str(func.attrs["global_symbol"])
        base.with_suffix(".c").write_text(c_source(func))
        cc.create_shared(str(base.with_suffix(".so")), [str(base.with_suffix(".c"))])
        return tvm.runtime.load_module(str(base.with_suffix(".so")))

    tvm.register_func("relay.ext.cexample", generate, override=True)
    for name in C_OPERATORS:
        register_op_attr(name, "target.cexample", lambda _: True)
    yield
    for name in C_OPERATORS:
        tvm.ir.Op.get(name).reset_attr("target.cexample")


def partitioned(func: relay.Function) -> tvm.IRModule:
    passes = [AnnotateTarget("cexample"), MergeCompilerRegions(), PartitionGraph()]
    return Sequential(passes)(tvm.IRModule.from_expr(func))


def test_generated_c_runs_beside_our_kernels(compiler: None) -> None:
    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(3, 4))
    before = relay.Function([x, y], relay.exp((x + y) * x) - y)
    mod = partitioned(before)
    assert len(mod.functions) == 3
    lib = relay.build(mod, "llvm")
    assert "tvmgen_default_cexample_main_0" in lib.graph_json
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    a, b = (np.random.default_rng(i).random((3, 4), "float32") for i in range(2))
    module.set_input("x", a)
    module.set_input("y", b)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), np.exp((a + b) * a) - b, rtol=1e-5)


def test_missing_code_generator_is_an_error() -> None:
    x = relay.var("x", shape=(2,))
    register_op_attr("exp", "target.nowhere", lambda _: True)
    mod = Sequential([AnnotateTarget("nowhere"), PartitionGraph()])(
        tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    )
    tvm.ir.Op.get("exp").reset_attr("target.nowhere")
    with pytest.raises(tvm.TVMError, match=r"requires the code generator relay\.ext\.nowhere"):
        relay.build(mod, "llvm")

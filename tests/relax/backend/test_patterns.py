"""Tables of patterns, and what partitioning by them leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.relax.backend import get_pattern, get_patterns_with_prefix, register_patterns
from tvm.relax.backend.contrib.coreml import partition_for_coreml
from tvm.relax.backend.contrib.cublas import partition_for_cublas
from tvm.relax.backend.contrib.cudnn import partition_for_cudnn
from tvm.relax.backend.contrib.cutlass import (
    is_shape_valid_for_cutlass_matmul,
    partition_for_cutlass,
)
from tvm.relax.backend.contrib.hipblas import partition_for_hipblas
from tvm.relax.backend.contrib.nnapi import min_feature_level, partition_for_nnapi
from tvm.relax.backend.patterns import (
    make_attention_rewrite_pattern,
    make_matmul_pattern,
    make_residual_block_pattern,
)
from tvm.relax.dpl import is_op, rewrite_call, wildcard
from tvm.relax.testing import (
    get_relax_attention_module,
    get_relax_matmul_module,
    get_relax_stacked_attention_module,
)
from tvm.script import relax as R


def composites(mod: tvm.IRModule) -> list[str]:
    """The names of composite functions, wherever they are."""
    found: list[str] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Function) and "Composite" in expr.attrs:
            found.append(str(expr.attrs["Composite"]))

    for func in mod.functions.values():
        relax.analysis.post_order_visit(func, visit)
    return sorted(found)


def test_later_patterns_are_preferred() -> None:
    pattern = is_op("relax.exp")(wildcard())
    register_patterns([("test_only.a", pattern), ("test_only.b", pattern)])
    assert [p.name for p in get_patterns_with_prefix("test_only")] == ["test_only.b", "test_only.a"]
    found = get_pattern("test_only.a")
    assert found is not None
    assert found.pattern is pattern
    assert get_pattern("test_only.c") is None


@pytest.mark.parametrize(
    ("partition", "name"), [(partition_for_cublas, "cublas"), (partition_for_hipblas, "hipblas")]
)
def test_products_with_their_ends(
    partition: Callable[[tvm.IRModule], tvm.IRModule], name: str
) -> None:
    mod = get_relax_matmul_module(
        (8, 16), (4, 16), "float16", transposed_y=True, bias_shape=(4,), activation=R.nn.relu
    )
    new = partition(mod)
    assert composites(new) == [f"{name}.matmul_transposed_bias_relu"]
    assert relax.analysis.well_formed(new)
    with pytest.raises(tvm.TVMError, match=f"relax.ext.{name}, there is none"):
        relax.transform.RunCodegen()(new)
    batches = get_relax_matmul_module((2, 1, 8, 16), (1, 3, 16, 4), "float16")
    assert partition(batches) is batches


def test_convolutions_for_cudnn() -> None:
    @R.function
    def main(x: R.Tensor((1, 8, 8, 4), "float16"), w: R.Tensor((8, 3, 3, 4), "float16")):
        with R.dataflow():
            y = R.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI")
            R.output(y)
        return y

    new = partition_for_cudnn(tvm.IRModule({"main": main}))
    assert composites(new) == ["cudnn.conv2d.nhwc_ohwi"]
    names = [g.name_hint for g in new.functions]
    assert sorted(names) == ["fused_relax_nn_conv2d_cudnn", "main"]


def test_stacked_attention() -> None:
    qkv = np.zeros((2, 8, 3 * 4 * 16), "float16")
    mod = get_relax_stacked_attention_module(qkv, 2, 8, 4, 16, 16, "split", qk_scale=0.5)
    assert composites(partition_for_cudnn(mod)) == ["cudnn.attention.BS3NH"]
    assert composites(partition_for_cutlass(mod)) == ["cutlass.stacked_attention_split"]
    qkv = np.zeros((8, 2, 4, 3 * 16), "float16")
    mod = get_relax_stacked_attention_module(qkv, 2, 8, 4, 16, 16, "strided_slice", layout="SBN3H")
    assert composites(partition_for_cutlass(mod)) == ["cutlass.attention"]
    shape = (2, 8, 4, 16)
    mod = get_relax_attention_module(shape, shape, shape, dtype="float16", bias_shape=(2, 4, 8, 8))
    assert composites(partition_for_cutlass(mod)) == ["cutlass.attention_bias"]


def test_shapes_of_products() -> None:
    a, b = tir.Var("a", "int64"), tir.Var("b", "int64")
    assert is_shape_valid_for_cutlass_matmul((a, 16, 15), (15, 2))
    assert is_shape_valid_for_cutlass_matmul((a, 4, 16, 15), (1, a, 4, 15, 2))
    assert not is_shape_valid_for_cutlass_matmul((a, 16, 15), (b, 15, 2))
    assert not is_shape_valid_for_cutlass_matmul((3, 1, 16, 15), (3, 2, 15, 2))
    assert not is_shape_valid_for_cutlass_matmul((3, a), (a, 5))
    blocked = get_relax_matmul_module((3, 1, 16, 15), (3, 2, 15, 2), "float16")
    assert len(partition_for_cutlass(blocked).functions) == 1


def test_residuals() -> None:
    mod = get_relax_matmul_module(
        (16, 16), (16, 16), "float16", bias_shape=(16,), residual_bin_op=R.add
    )
    assert composites(partition_for_cutlass(mod)) == ["cutlass.matmul_bias_residual_add"]
    pattern, parts = make_residual_block_pattern(make_matmul_pattern(True), "relax.add")
    assert set(parts) == {"lhs", "rhs", "root", "bias", "residual"}
    last = mod["main"].body.blocks[0].bindings[-1].value
    assert pattern.match(last, relax.analysis.get_var2val(mod["main"]))


def test_phones() -> None:
    mod = get_relax_matmul_module((8, 16), (16, 4), "float32", activation=R.nn.relu)
    assert composites(partition_for_coreml(mod)) == ["coreml.matmul", "coreml.nn.relu"]
    assert composites(partition_for_nnapi(mod)) == ["nnapi.batch_matmul", "nnapi.relu"]
    assert composites(partition_for_nnapi(mod, feature_level=1)) == ["nnapi.relu"]
    assert min_feature_level("nnapi.transpose") == 2
    with pytest.raises(tvm.TVMError, match="no pattern"):
        min_feature_level("nnapi.nothing")


def test_attention_that_is_written_out() -> None:
    @R.function(private=True)
    def before(
        q: R.Tensor((2, 8, 4, 16), "float32"),
        k: R.Tensor((2, 6, 4, 16), "float32"),
        v: R.Tensor((2, 6, 4, 12), "float32"),
        bias: R.Tensor((8, 8, 6), "float32"),
    ):
        with R.dataflow():
            q1 = R.reshape(R.permute_dims(q, [0, 2, 1, 3]), (8, 8, 16))
            k1 = R.reshape(R.permute_dims(k, [0, 2, 1, 3]), (8, 6, 16))
            v1 = R.reshape(R.permute_dims(v, [0, 2, 1, 3]), (8, 6, 12))
            score = R.matmul(q1, R.permute_dims(k1, [0, 2, 1]))
            scaled = R.divide(score, R.const(4.0, "float32"))
            weights = R.nn.softmax(R.add(scaled, bias))
            out = R.reshape(R.matmul(weights, v1), (2, 4, 8, 12))
            result = R.permute_dims(out, [0, 2, 1, 3])
            R.output(result)
        return result

    after = rewrite_call(*make_attention_rewrite_pattern("BSNH", "BSNH", True, False), before)
    ops = [b.value.op.name for b in after.body.blocks[0].bindings]
    assert ops == ["relax.reshape", "relax.nn.attention_bias"]
    rng = np.random.default_rng(0)
    args = [rng.standard_normal([int(d) for d in p.struct_info.shape], "float32") for p in before.params]  # fmt: skip
    results = []
    for func in (before, after):
        mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
        results.append(vm["main"](*[tvm.nd.array(a) for a in args]).numpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)

"""What scripts keep, what passes make of it, and the forms of attributes and sizes."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.error import TVMError
from tvm.relax.testing.transform import ApplyEmptyCppMutator
from tvm.relax.transform import ConvertToDataflow, EliminateCommonSubexpr
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module(check_well_formed=False)
class Written:
    @R.function
    def main(A: R.Tensor([16], "float32")):
        cls = Written
        args = (A,)
        return relax.Call(
            tvm.ir.Op.get("relax.call_tir"), [cls.double, args], sinfo_args=[A.struct_info]
        )

    @T.prim_func(private=True)
    def double(A: T.Buffer(16, "float32"), B: T.Buffer(16, "float32")):
        for i in range(16):
            B[i] = A[i] * T.float32(2)


def test_scripts_keep_calls_that_passes_normalise() -> None:
    assert not relax.analysis.well_formed(Written)
    new = ApplyEmptyCppMutator()(Written)
    call = new["main"].body.blocks[0].bindings[-1].value
    assert isinstance(call.args[1], relax.Tuple)
    assert relax.analysis.well_formed(new)


def test_integers_of_convolutions_are_expressions() -> None:
    x = relax.Var("x", R.Tensor((2, 3, 28, 28), "float32"))
    w = relax.Var("w", R.Tensor((4, 3, 3, 3), "float32"))
    attrs = relax.op.nn.conv2d(x, w, padding=1).attrs
    assert [type(p) for p in attrs.padding] == [tir.IntImm] * 4
    assert attrs.strides[0].dtype == "int64" and attrs.strides[0] == 1


def test_sizes_are_sums_with_what_is_taken_away_last() -> None:
    n, k = tir.Var("n", "int64"), tir.Var("k", "int64")
    x = relax.Var("x", R.Tensor((2, 3, n), "float32"))
    w = relax.Var("w", R.Tensor((4, 3, k), "float32"))
    found = relax.BlockBuilder().normalize(relax.op.nn.conv1d(x, w))
    tvm.ir.assert_structural_equal(found.struct_info.shape[2], n + 1 - k)


def test_channels_that_groups_cannot_divide_are_rejected() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", R.Tensor((2, n * 6, 28), "float32"))
    w = relax.Var("w", R.Tensor((n * 6 + 4, n, 3), "float32"))
    with pytest.raises(TVMError, match="that 6 groups divide"):
        relax.BlockBuilder().normalize(relax.op.nn.conv1d(x, w, groups=6))


def test_checks_and_outputs_are_shared() -> None:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.match_cast(a, R.Tensor((2, 3), "float32"))
            c = R.exp(x)
            d = R.match_cast(c, R.Tensor((2, 3), "float32"))
            e = R.add(b, d)
            R.output(c, e)
        f = R.exp(x)
        return (c, e, f)

    new = EliminateCommonSubexpr()(tvm.IRModule({"main": main}))["main"]
    first, second = new.body.blocks
    values = [binding.value for binding in first.bindings]
    assert sum([isinstance(value, relax.Call) for value in values]) == 2
    assert isinstance(second.bindings[0].value, relax.Var)
    machine = relax.VirtualMachine(relax.build(tvm.IRModule({"main": new}), "llvm"), tvm.cpu())
    array = np.random.default_rng(0).random((2, 3), dtype="float32")
    found = machine["main"](tvm.nd.array(array))
    for value, factor in zip(found, (1, 2, 1), strict=True):
        np.testing.assert_allclose(value.numpy(), factor * np.exp(array), rtol=1e-6)


def test_local_functions_belong_to_dataflow_blocks() -> None:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        @R.function
        def inner(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            return R.exp(y)

        z = R.add(x, x)
        return inner(z)

    new = ConvertToDataflow()(tvm.IRModule({"main": main}))["main"]
    assert [type(block) for block in new.body.blocks] == [relax.DataflowBlock]


def test_slices_within_bounds_have_the_size_of_their_bounds() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", R.Tensor((16, 16), "float32"))
    call = relax.op.strided_slice(x, [0], [n], [n + 1], assume_inbound=True)
    found = relax.BlockBuilder().normalize(call)
    tvm.ir.assert_structural_equal(found.struct_info, relax.TensorStructInfo((1, 16), "float32"))


def test_ellipses_of_einsum_broadcast() -> None:
    @R.function
    def main(a: R.Tensor((1, 3, 4), "float32"), b: R.Tensor((2, 4, 5), "float32")):
        return R.einsum((a, b), "...ij,...jk->...ik")

    machine = relax.VirtualMachine(relax.build(tvm.IRModule({"main": main}), "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    a, b = rng.random((1, 3, 4), dtype="float32"), rng.random((2, 4, 5), dtype="float32")
    found = machine["main"](tvm.nd.array(a), tvm.nd.array(b)).numpy()
    np.testing.assert_allclose(found, a @ b, rtol=1e-5)


@pytest.mark.parametrize(
    "dtype, wide", [("int8", "float32"), ("uint8", "float16"), ("int32", "float32")]
)
def test_quantize_saturates_values_beyond_all_integers(dtype: str, wide: str) -> None:
    @R.function
    def main(x: R.Tensor((6,), wide), scale: R.Tensor((1,), wide), zero: R.Tensor((1,), dtype)):
        return R.quantize(R.reshape(x, (6, 1)), scale, zero, axis=1, out_dtype=dtype)

    machine = relax.VirtualMachine(relax.build(tvm.IRModule({"main": main}), "llvm"), tvm.cpu())
    x = np.array([-3e4, 3e4, 0.4, 7, -np.inf, np.inf], wide)
    if wide == "float32":
        x[:2] *= 1e30
    args = (x, np.array([0.5], wide), np.array([3], dtype))
    found = machine["main"](*[tvm.nd.array(a) for a in args]).numpy()[:, 0]
    info = np.iinfo(dtype)
    np.testing.assert_array_equal(found, [info.min, info.max, 4, 17, info.min, info.max])


def test_what_is_taken_out_of_written_tuples_is_not_fused() -> None:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            pair = (x, (y, x))
            inner = pair[1]
            first = inner[0]
            z = R.add(first, x)
            R.output(first, z)
        return (first, z)

    mod = tvm.IRModule({"main": main})
    for make in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        mod = getattr(relax.transform, make)()(mod)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x, y = np.arange(4, dtype="float32"), np.full(4, 1.5, "float32")
    found = machine["main"](tvm.nd.array(x), tvm.nd.array(y))
    np.testing.assert_array_equal(found[0].numpy(), y)
    np.testing.assert_array_equal(found[1].numpy(), x + y)

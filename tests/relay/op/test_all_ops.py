"""Every operator: its type, its value when compiled, and its value when folded on the host."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tvm
from tests.executors import outputs_of
from tvm import relay
from tvm.contrib import graph_executor
from tvm.ir import pickles
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.relay.op.registry import all_ops

from .advanced_indexing_cases import setting_cases
from .algorithm_cases import algorithm_cases
from .cases import Case, binary_cases, moving_cases, reduce_cases, unary_cases
from .finding_cases import finding_cases
from .gradient_cases import gradient_cases
from .hint_cases import mark_cases
from .image_cases import image_cases
from .linalg_cases import linalg_cases
from .nn_cases import nn_cases
from .option_cases import option_cases
from .qnn_cases import qnn_cases
from .qnn_option_cases import qnn_option_cases
from .random_cases import random_cases
from .space_cases import space_cases
from .sparse_cases import sparse_cases
from .special_cases import special_cases
from .vision_cases import vision_cases
from .volume_cases import volume_cases
from .window_cases import window_cases

CASES = [
    *unary_cases(), *binary_cases(), *reduce_cases(), *moving_cases(),
    *nn_cases(), *algorithm_cases(), *volume_cases(), *image_cases(),
    *space_cases(), *setting_cases(), *qnn_cases(), *vision_cases(),
    *random_cases(), *finding_cases(), *gradient_cases(), *mark_cases(),
    *sparse_cases(), *special_cases(), *linalg_cases(), *window_cases(), *option_cases(),
    *qnn_option_cases(),
]  # fmt: skip

# reached through others: the blocked forms through AlterOpLayout
THROUGH_OTHERS = {
    "nn.contrib_conv2d_NCHWc", "nn.contrib_conv2d_NCHWc_small_weights", "nn.contrib_depthwise_conv2d_NCHWc", "nn.contrib_dense_pack",
    "nn.contrib_conv2d_winograd_without_weight_transform",
    "nn.contrib_conv2d_winograd_weight_transform",
    "nn.contrib_attention",  # through FuseAttention
    "argwhere", "sparse_fill_empty_rows",  # their shapes depend on data: test_data_shapes.py
    "call_lowered",  # through AOTLowerMain: tests/relay/backend/test_aot_steps.py
    "relay.op.annotation.simulated_quantize",  # through relay.quantize: tests/relay/quantize
    "contrib.packed_call",  # calls what others registered: test_packed_call.py
}  # fmt: skip


def _function(case: Case) -> relay.Function:
    params = [
        relay.var(f"p{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(case.inputs)
    ]
    return relay.Function(params, case.build(*params))


def test_functions_of_all_operators_are_read_from_the_cache() -> None:
    for case in CASES:
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(_function(case)))
        again = pickles.loads(pickle.dumps(mod["main"], protocol=5))
        assert structural_equal(again, mod["main"]), str(case)


def _as_list(value: Any) -> list[np.ndarray]:
    return (
        [np.asarray(v) for v in value] if isinstance(value, (list, tuple)) else [np.asarray(value)]
    )


def _expected(case: Case) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return _as_list(case.expected(*case.inputs))


def _compiled(case: Case, target: str = "llvm", opt_level: int = 3) -> list[np.ndarray]:
    mod = tvm.IRModule.from_expr(_function(case))
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(mod, target=target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for i, array in enumerate(case.inputs):
        module.set_input(f"p{i}", array)
    module.run()
    return outputs_of(module)


def _assert_close(found: list[np.ndarray], wanted: list[np.ndarray], tolerance: float) -> None:
    assert len(found) == len(wanted)
    for have, want in zip(found, wanted, strict=True):
        assert have.shape == want.shape
        if have.dtype == want.dtype and want.dtype in ("int64", "uint64"):
            np.testing.assert_array_equal(have, want)  # float64 would not hold all of them
            continue
        np.testing.assert_allclose(
            have.astype("float64"), want.astype("float64"), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_type_relation_gives_shape_and_dtype(case: Case) -> None:
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(_function(case)))
    ty = mod["main"].body.checked_type
    types = ty.fields if isinstance(ty, relay.TupleType) else [ty]
    expected = _expected(case)
    assert [t.concrete_shape for t in types] == [e.shape for e in expected]
    for t, e in zip(types, expected, strict=True):
        if e.dtype != "float64":
            assert t.dtype == str(e.dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_operator_agrees_with_numpy(case: Case) -> None:
    _assert_close(_compiled(case), _expected(case), case.tolerance)


# calls without arguments are left alone: a constant of that size would be stored
FOLDED = [c for c in CASES if Op.get(c.name).fold and c.name not in ("zeros", "ones")]


@pytest.mark.parametrize("case", FOLDED, ids=str)
def test_folding_agrees_with_numpy(case: Case) -> None:
    call = case.build(*[relay.const(a, str(a.dtype)) for a in case.inputs])
    mod = tvm.IRModule.from_expr(relay.Function([], call))
    folded = relay.transform.FoldConstant()(relay.transform.InferType()(mod))["main"].body
    fields = folded.fields if isinstance(folded, relay.Tuple) else [folded]
    if not all(isinstance(f, relay.Constant) for f in fields):
        pytest.fail(f"{case.name} of constants is not folded")
    _assert_close([f.data.numpy() for f in fields], _expected(case), case.tolerance)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name in ("nn.conv2d", "nn.dense", "nn.max_pool2d")], ids=str
)
def test_unaltered_layouts_agree_with_numpy(case: Case) -> None:
    _assert_close(_compiled(case, opt_level=0), _expected(case), case.tolerance)


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.name in ("nn.conv2d", "nn.batch_matmul", "nn.softmax", "sum")],
    ids=str,
)
def test_schedules_for_narrower_vectors_agree_with_numpy(case: Case) -> None:
    found = _compiled(case, "llvm -mcpu=core-avx2")
    _assert_close(found, _expected(case), case.tolerance)


def test_every_operator_has_a_case() -> None:
    covered = {case.name for case in CASES} | THROUGH_OTHERS
    covered |= {op.name for op in all_ops() if op.make_static is not None}  # see test_dyn
    assert [op.name for op in all_ops() if op.name not in covered] == []

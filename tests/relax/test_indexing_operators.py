"""Operators that gather, scatter, join and create: values, struct info, text and what they reject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tvm
from tvm import relax, tir
from tvm.error import TypeCheckError
from tvm.ir import assert_structural_equal
from tvm.relax import op
from tvm.tir.expr import IntImm

Array = np.ndarray
RNG = np.random.default_rng(3)


def _floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype("float32")


def _ints(bound: int, *shape: int, low: int = 0) -> Array:
    return RNG.integers(low, bound, shape).astype("int64")


def program(build: Callable[..., Any], arrays: list[Array], symbolic: bool) -> Any:
    """A module of one operator; symbolic: equal extents above 2 of the arrays are one variable."""
    sizes: dict[int, tir.Var] = {}

    def dim(extent: int) -> Any:
        if not symbolic or extent < 3:
            return extent
        return sizes.setdefault(extent, tir.Var(f"n{extent}", "int64"))

    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo([dim(d) for d in a.shape], str(a.dtype)))
        for i, a in enumerate(arrays)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            output = builder.emit_output(build(*params))
        builder.emit_func_output(output)
    return builder.get()


def run(mod: Any, arrays: list[Array]) -> Any:
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    found = machine["main"](*[tvm.nd.array(a) for a in arrays])
    return [f.numpy() for f in found] if not hasattr(found, "numpy") else found.numpy()


def _put(x: Array, rows: Array, columns: Array, values: Array) -> Array:
    made = x.copy()
    made[rows, columns] = values
    return made


def _added(x: Array, rows: Array, values: Array) -> Array:
    made = x.copy()
    np.add.at(made, rows, values)
    return made


def _sliced(x: Array, src: Array) -> Array:
    made = x.copy()
    made[:, 1:-1:2] = src
    return made


def _torch(function: Callable[..., Any]) -> Callable[..., Array]:
    return lambda *arrays: function(*[torch.from_numpy(a) for a in arrays]).numpy()


def _sampled(x: Any, grid: Any, **options: Any) -> Any:
    moved = torch.movedim(grid, 1, -1)
    return torch.nn.functional.grid_sample(x, moved, align_corners=False, **options)


CASES: dict[str, tuple[Any, Any, list[Array]]] = {
    "gather_elements": (
        lambda x, i: op.gather_elements(x, i, 1), lambda x, i: np.take_along_axis(x, i, 1),
        [_floats(3, 5), _ints(5, 3, 4)],
    ),
    "gather_nd": (
        lambda x, i: op.gather_nd(x, i), lambda x, i: x[i[..., 0], i[..., 1]],
        [_floats(3, 5, 4), _ints(3, 6, 2)],
    ),
    "gather_nd of batches": (
        lambda x, i: op.gather_nd(x, i, 1), lambda x, i: x[np.arange(3)[:, None], i[..., 0]],
        [_floats(3, 5, 4), _ints(5, 3, 6, 1)],
    ),
    "index_tensor": (
        lambda x, i, j: op.index_tensor(x, [i, j]), lambda x, i, j: x[i, j],
        [_floats(5, 4, 3), _ints(5, 6, 1, low=-5), _ints(4, 7)],
    ),
    "index_put": (
        lambda x, i, j, v: op.index_put(x, [i, j], v), _put,
        [_floats(5, 4, 3), np.array([[0], [-1], [2]]), np.array([1, 3]), _floats(3, 2, 1)],
    ),
    "index_put, added": (
        lambda x, i, v: op.index_put(x, [i], v, accumulate=True), _added,
        [_floats(5, 4), _ints(5, 6), _floats(6, 4)],
    ),
    "slice_scatter": (
        lambda x, s: op.slice_scatter(x, s, 1, -1, 2, axis=1), _sliced,
        [_floats(4, 7), _floats(4, 3)],
    ),
    "one_hot": (
        lambda i: op.one_hot(i, 1.0, 0.0, 6), lambda i: np.eye(6, dtype="float32")[i],
        [_ints(6, 4, 3)],
    ),
    "one_hot along the first axis": (
        lambda i: op.one_hot(i, relax.PrimValue(5), relax.PrimValue(-1), 6, axis=0),
        lambda i: np.moveaxis(np.where(np.eye(6)[i] > 0, 5, -1), -1, 0), [_ints(6, 4, 3)],
    ),
    "stack": (
        lambda x, y: op.stack([x, y], -1), lambda x, y: np.stack([x, y], -1),
        [_floats(4, 3), _floats(4, 3)],
    ),
    "meshgrid": (
        lambda x, y: op.meshgrid([x, y], "xy"), lambda x, y: np.meshgrid(x, y),
        [_floats(4), _floats(3)],
    ),
    "eye_like": (
        lambda x: op.eye_like(x, 1, "int32"), lambda x: np.eye(3, 5, 1, dtype="int32"),
        [_floats(3, 5)],
    ),
    "eye": (
        lambda x: op.eye(x.struct_info.shape[0], 5, -1), lambda x: np.eye(4, 5, -1, "float32"),
        [_floats(4)],
    ),
    "outer": (op.outer, np.outer, [_floats(4), _floats(3)]),
    "bucketize": (
        lambda x, b: op.bucketize(x, b, out_int32=True, right=True),
        _torch(lambda x, b: torch.bucketize(x, b, out_int32=True, right=True)),
        [np.array([[0.0, 1.0, 4.0], [2.5, -1.0, 3.0]], "float32"), np.array([0, 1, 3], "float32")],
    ),
    "log_add_exp": (
        op.log_add_exp, _torch(torch.logaddexp),
        [np.array([1, -np.inf, 90, np.inf], "float32"), np.array([2, -np.inf, -90, 1], "float32")],
    ),
    "trunc": (op.trunc, np.trunc, [_floats(4, 3) * 3]),
    "nn.prelu": (
        lambda x, a: op.nn.prelu(x, a), _torch(torch.nn.functional.prelu),
        [_floats(3, 4, 5), _floats(4)],
    ),
    "nn.prelu of one slope": (
        lambda x, a: op.nn.prelu(x, a), _torch(torch.nn.functional.prelu),
        [_floats(3, 4, 5), _floats(1)],
    ),
    "nn.softplus": (
        lambda x: op.nn.softplus(x, 2.0, 15.0),
        _torch(lambda x: torch.nn.functional.softplus(x, 2.0, 15.0)), [_floats(4, 3) * 20],
    ),
    "nn.selu": (op.nn.selu, _torch(torch.selu), [_floats(4, 3)]),
    "nn.relu6": (op.nn.relu6, lambda x: x.clip(0, 6), [_floats(4, 3) * 6]),
    "nn.instance_norm": (
        lambda x, g, b: op.nn.instance_norm(x, g, b, 1, [2, 3]),
        _torch(lambda x, g, b: torch.nn.functional.instance_norm(x, weight=g, bias=b)),
        [_floats(3, 4, 5, 6), _floats(4), _floats(4)],
    ),
    "nn.pixel_shuffle": (
        lambda x: op.nn.pixel_shuffle(x, 2), _torch(lambda x: torch.pixel_shuffle(x, 2)),
        [_floats(3, 8, 4, 5)],
    ),
    "image.grid_sample": (
        lambda x, g: op.image.grid_sample(x, g, padding_mode="border", align_corners=False),
        _torch(lambda x, g: _sampled(x, g, padding_mode="border")),
        [_floats(2, 3, 5, 6), _floats(2, 2, 4, 7)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_reference(name: str, symbolic: bool) -> None:
    build, reference, arrays = CASES[name]
    mod = program(build, arrays, symbolic)
    found, wanted = run(mod, arrays), reference(*arrays)
    for a, b in zip(*[v if isinstance(v, (list, tuple)) else [v] for v in (found, wanted)], strict=True):  # fmt: skip
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-5, 1e-5)
    info = mod["main"].ret_struct_info
    for tensor in getattr(info, "fields", [info]):
        known = [d.value for d in tensor.shape.values if isinstance(d, IntImm)]
        assert symbolic or known == list((found[0] if isinstance(found, list) else found).shape)


@pytest.mark.parametrize("name", CASES)
def test_text_is_read_back(name: str) -> None:
    build, _, arrays = CASES[name]
    mod = program(build, arrays, True)
    assert_structural_equal(tvm.script.from_source(mod.script()), mod)


def _var(*shape: Any, dtype: str = "float32", ndim: int | None = None) -> relax.Var:
    info = relax.TensorStructInfo(None if ndim is not None else shape, dtype, None, ndim or -1)
    return relax.Var("x", info)


N = tir.Var("n", "int64")

INFERRED = [
    (lambda: op.stack([_var(N, 2), _var(N, 2)], 1), relax.TensorStructInfo((N, 2, 2), "float32")),
    (lambda: op.stack([_var(N, 2), _var(ndim=2)]), relax.TensorStructInfo(None, "float32", None, 3)),
    (
        lambda: op.gather_nd(_var(N, 3, 4), _var(5, 1, dtype="int64")),
        relax.TensorStructInfo((5, 3, 4), "float32"),
    ),
    (
        lambda: op.gather_elements(_var(3, 4), _var(ndim=2, dtype="int32"), 0),
        relax.TensorStructInfo(None, "float32", None, 2),
    ),
    (
        lambda: op.index_tensor(_var(N, 4), [_var(7, 1, dtype="int64"), _var(2, dtype="int64")]),
        relax.TensorStructInfo((7, 2), "float32"),
    ),
    (lambda: op.eye(N, 4, dtype="int8"), relax.TensorStructInfo((N, 4), "int8")),
    (
        lambda: op.one_hot(_var(N, dtype="int64"), True, False, 4),
        relax.TensorStructInfo((N, 4), "bool"),
    ),
    (
        lambda: op.nn.pixel_shuffle(_var(1, N * 4, 3, N), 2),
        relax.TensorStructInfo((1, N, 6, N * 2), "float32"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(INFERRED)))
def test_struct_info_says_what_is_known(case: int) -> None:
    build, wanted = INFERRED[case]
    assert_structural_equal(relax.BlockBuilder().normalize(build()).struct_info, wanted)


REJECTED = [
    (lambda: op.stack([_var(2, 3), _var(2, 4)]), "shapes that agree"),
    (lambda: op.stack([_var(2), _var(2, 4)]), "one rank"),
    (lambda: op.meshgrid([_var(2, 2)]), "vectors"),
    (lambda: op.gather_elements(_var(2, 2), _var(2, 2)), "integer dtype"),
    (lambda: op.gather_elements(_var(2, 2), _var(2, dtype="int64")), "one rank"),
    (lambda: op.gather_nd(_var(2, 2), _var(4, 3, dtype="int64")), "at most 2 indices"),
    (lambda: op.gather_nd(_var(2, 2), _var(4, 1, dtype="int64"), 2), "batch_dims"),
    (lambda: op.index_tensor(_var(2), [_var(3, dtype="int64")] * 2), "at most 1"),
    (lambda: op.index_put(_var(2), [_var(3, dtype="int64")], _var(4)), "broadcast"),
    (lambda: op.index_put(_var(2), [_var(3, dtype="int64")], _var(3, dtype="int8")), "float32"),
    (lambda: op.slice_scatter(_var(4, 3), _var(2, 2), 0, 2, 1), "new elements"),
    (lambda: op.slice_scatter(_var(6), _var(2), 0, 6, 1), "new elements"),
    (lambda: op.slice_scatter(_var(4), _var(2), 0, 2, 0), "positive step"),
    (lambda: op.one_hot(_var(2, dtype="int64"), 1, 0.0, 3), "one dtype"),
    (lambda: op.eye(2.5), "integers"),
    (lambda: op.nn.prelu(_var(2, 3), _var(4)), "as many slopes as axis 1"),
    (lambda: op.nn.pixel_shuffle(_var(1, 6, 2, 2), 2), "channels"),
    (lambda: op.image.grid_sample(_var(1, 3, 4, 4), _var(1, 4, 4, 2)), "2 coordinates"),
    (lambda: op.bucketize(_var(2), _var(2, 2)), "one dimension"),
    (lambda: op.outer(_var(2), _var(2, 2)), "vectors"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REJECTED)))
def test_what_does_not_fit_is_rejected(case: int) -> None:
    build, text = REJECTED[case]
    with pytest.raises(TypeCheckError, match=text):
        relax.BlockBuilder().normalize(build())

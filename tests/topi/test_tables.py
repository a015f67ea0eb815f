"""Computes with their schedules, called as programs call them, against references in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.topi import testing as ref
from tvm.topi.sparse.utils import random_bsr_matrix

Array = np.ndarray
RNG = np.random.default_rng(12)
nn, g, x86, vision = topi.nn, topi.generic, topi.x86, topi.vision


def _draw(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype("float32")


def _ints(low: int, high: int, shape: Sequence[int], dtype: str) -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


def _signed(bits: Array) -> Array:
    return bits.astype("int32") * 2 - 1


def _conv_of_bits(layout: str) -> Callable[..., Array]:
    convolve = ref.conv2d_nchw_python if layout == "nchw" else ref.conv2d_nhwc_python
    return lambda a, w: convolve(a.astype("float32"), _signed(w).astype("float32"), 1, 1)


def _pairs(low: int, high: int, dtype: str = "float32") -> Array:
    """Regions: the image and opposite corners."""
    corners = np.sort(RNG.integers(low, high, (4, 2, 2)), 1).reshape(4, 4)
    return np.concatenate([np.zeros((4, 1)), corners], 1).astype(dtype)


def _triangle(x: Array, k: int) -> Array:
    return np.tril(x, k)


IMAGE, LAST, ROWS = _draw(1, 8, 6, 5), _draw(1, 6, 5, 8), _draw(4, 64)
BITS = {"nchw": _ints(0, 4, (1, 32, 5, 5), "uint32"), "nhwc": _ints(0, 4, (1, 5, 5, 32), "uint32")}
SIGNS = {"nchw": _ints(0, 2, (4, 32, 3, 3), "uint32"), "nhwc": _ints(0, 2, (3, 3, 32, 4), "uint32")}
WORDS = [_ints(0, 2, (3, 64), "uint32"), _ints(0, 2, (8, 64), "uint32")]
NARROW = _ints(0, 9, (1, 16, 6, 6), "uint8"), _ints(-9, 9, (32, 16, 3, 3), "int8")
WIDE = [a.astype("int32") for a in NARROW]
MATRIX = random_bsr_matrix(16, 8, 4, 1, 0.4, "float32")
BLOCKS = (MATRIX.data, MATRIX.indices, MATRIX.indptr)
CONDITION = _ints(0, 2, (4, 5), "int32")
REGIONS = _pairs(0, 12)


def _dense_of(blocks: Array, columns: Array, begins: Array) -> Array:
    full = np.zeros((16, 8), "float32")
    for row in range(4):
        for n in range(begins[row], begins[row + 1]):
            full[4 * row : 4 * row + 4, columns[n]] = blocks[n, :, 0]
    return full


STEPS = ((1, 1), (1, 1), (1, 1))
# a compute of tensors, its schedule, the arrays, what is expected (of the first result)
PROGRAMS: dict[str, tuple[Callable[..., Any], Any, Sequence[Array], Callable[..., Any]]] = {
    "dilation2d_nchw": (lambda x, w: topi.image.dilation2d_nchw(x, w, 1, 0, 1), g.schedule_dilation2d_nchw, (IMAGE, _draw(8, 2, 2)), lambda x, w: np.max([x[:, :, i : i + 5, j : j + 4] + w[:, i, j][:, None, None] for i in range(2) for j in range(2)], 0)),
    "winograd_in_two_steps": (lambda x, w: nn.conv2d_winograd_nchw_without_weight_transform(x, nn.conv2d_winograd_weight_transform(w, 4), 1, 1, 1, "float32"), g.schedule_conv2d_winograd_without_weight_transform, (IMAGE, _draw(4, 8, 3, 3)), lambda x, w: ref.conv2d_nchw_python(x, w, 1, 1)),
    "lrn": (lambda x: nn.lrn(x, 3, 1, 1e-2, 0.75, 2), g.schedule_lrn, (IMAGE,), lambda x: ref.lrn_python(x, 3, 1, 2, 1e-2, 0.75)),
    "pool_grad": (lambda gr, x: nn.pool_grad(gr, x, [3, 3], [1, 1], [1, 1, 1, 1], "max"), g.schedule_pool_grad, (_draw(1, 8, 6, 5), IMAGE), lambda gr, x: ref.pool_grad_nchw(x, gr, (3, 3), (1, 1), [1, 1, 1, 1], "max", False)),
    "adaptive_pool3d": (lambda x: nn.adaptive_pool3d(x, (2, 2, 1), "avg", "NDHWC"), g.schedule_adaptive_pool, (_draw(1, 4, 6, 3, 2),), lambda x: ref.adaptive_pool(x, (2, 2, 1), "avg", "NDHWC")),
    "batch_norm": (lambda x, *v: nn.batch_norm(x, *v, axis=1, epsilon=1e-5, training=False), g.schedule_batch_norm, (IMAGE, *[_draw(8) ** 2 for _ in range(4)]), lambda x, *v: ref.batch_norm(x, *v, 1, 1e-5, True, True, False, 0.1)[0]),
    "lstm": (nn.lstm, g.schedule_lstm, (_draw(3, 2, 4), _draw(12, 4), _draw(12, 3)), lambda *a: ref.lstm_python(*a)[0]),
    "bitserial_conv2d_nchw": (lambda a, w: nn.bitserial_conv2d_nchw(a, w, 1, 1, 2, 1, out_dtype="int32"), g.schedule_bitserial_conv2d_nchw, (BITS["nchw"], SIGNS["nchw"]), _conv_of_bits("nchw")),
    "bitserial_conv2d_nhwc": (lambda a, w: nn.bitserial_conv2d_nhwc(a, w, 1, 1, 2, 1, out_dtype="int32"), g.schedule_bitserial_conv2d_nhwc, (BITS["nhwc"], SIGNS["nhwc"]), _conv_of_bits("nhwc")),
    "x86.bitserial_conv2d_nchw": (lambda a, w: x86.bitserial_conv2d_nchw(a, w, 1, 1, 2, 1, out_dtype="int32"), x86.schedule_bitserial_conv2d_nchw, (BITS["nchw"], SIGNS["nchw"]), _conv_of_bits("nchw")),
    "x86.bitserial_conv2d_nhwc": (lambda a, w: x86.bitserial_conv2d_nhwc(a, w, 1, 1, 2, 1, out_dtype="int32"), x86.schedule_bitserial_conv2d_nhwc, (BITS["nhwc"], SIGNS["nhwc"]), _conv_of_bits("nhwc")),
    "bitserial_dense": (lambda a, w: nn.bitserial_dense(a, w, 1, 1, "uint32", "int32", True), g.schedule_bitserial_dense, WORDS, lambda a, w: a.astype("int32") @ _signed(w).T),
    "x86.bitserial_dense": (lambda a, w: x86.bitserial_dense(a, w, 1, 1, "uint32", "int32", False), x86.schedule_bitserial_dense, WORDS, lambda a, w: a.astype("int32") @ w.T.astype("int32")),
    "binary_dense": (lambda a, w: nn.binary_dense(nn.binarize_pack(a), nn.binarize_pack(w)), g.schedule_binary_dense, (ROWS, _draw(8, 64)), lambda a, w: np.where(a >= 0, 1, -1) @ np.where(w >= 0, 1, -1).T),
    "x86.binary_dense": (lambda a, w: nn.binary_dense(nn.binarize_pack(a), nn.binarize_pack(w)), x86.schedule_binary_dense, (ROWS, _draw(8, 64)), lambda a, w: np.where(a >= 0, 1, -1) @ np.where(w >= 0, 1, -1).T),
    "binarize_pack": (nn.binarize_pack, g.schedule_binarize_pack, (ROWS,), lambda a: np.packbits(a >= 0, axis=1).view(">u4").astype("uint32")),
    "x86.binarize_pack": (nn.binarize_pack, x86.schedule_binarize_pack, (ROWS,), lambda a: np.packbits(a >= 0, axis=1).view(">u4").astype("uint32")),
    "bitpack": (lambda a: nn.bitpack(a, 1, 1, 1, "uint32"), g.schedule_bitpack, (WORDS[0],), lambda a: np.packbits(a.astype(bool), axis=1).view(">u4").astype("uint32")[:, None, :]),
    "conv2d_nchw_int8": (lambda a, w: x86.conv2d_nchw_int8(a, w, *STEPS, "int32"), x86.schedule_conv2d_nchw_int8, NARROW, lambda a, w: ref.conv2d_nchw_python(*WIDE, 1, 1)),
    "conv2d_nhwc_pack_int8": (lambda a, w: nn.conv2d_nhwc(a, w, *STEPS, "int32"), x86.schedule_conv2d_nhwc_pack_int8, (NARROW[0].transpose(0, 2, 3, 1).copy(), NARROW[1].transpose(2, 3, 1, 0).copy()), lambda a, w: ref.conv2d_nchw_python(*WIDE, 1, 1).transpose(0, 2, 3, 1)),
    "conv2d_nhwc_pack": (lambda a, w: nn.conv2d_nhwc(a, w, *STEPS), g.schedule_conv2d_nhwc_pack, (LAST, _draw(3, 3, 8, 4)), lambda a, w: ref.conv2d_nhwc_python(a, w, 1, 1)),
    "group_conv2d_nchw_spatial_pack": (lambda a, w: x86.group_conv2d_nchw_spatial_pack(a, w, *STEPS, 2, "float32"), x86.schedule_group_conv2d_nchwc, (IMAGE, _draw(6, 4, 3, 3)), lambda a, w: ref.conv2d_nchw_python(a, w, 1, 1, 2)),
    "dense_dynamic": (lambda a, w: x86.dense_dynamic(a, w, None, "float32"), x86.schedule_dense_dynamic, (ROWS, _draw(8, 64)), lambda a, w: ref.dense(a, w, None)),
    "dense_cblas": (lambda a, w, b: x86.dense_cblas(a, w, b), x86.schedule_dense_cblas, (ROWS, _draw(8, 64), _draw(8)), lambda a, w, b: ref.dense(a, w, b, True)),
    "matmul_cblas": (lambda a, w: x86.matmul_cblas(a, w, transpose_b=True), x86.schedule_matmul_cblas, (ROWS, _draw(8, 64)), lambda a, w: a @ w.T),
    "batch_matmul_cblas": (lambda a, w: x86.batch_matmul_cblas(a, w), x86.schedule_batch_matmul_cblas, (_draw(2, 3, 4), _draw(2, 5, 4)), lambda a, w: ref.batch_matmul(a, w)),
    "batch_matmul_int8": (lambda a, w: x86.batch_matmul(a, w, out_dtype="int32"), x86.schedule_batch_matmul_int8, (_ints(0, 9, (2, 3, 16), "uint8"), _ints(-9, 9, (2, 16, 16), "int8")), lambda a, w: ref.batch_matmul(a, w, "int32")),
    "concatenate_cpu": (lambda *t: x86.concatenate(t, 1), x86.schedule_concatenate_cpu, (ROWS, _draw(4, 3)), lambda *t: np.concatenate(t, 1)),
    "x86.batch_norm": (lambda x, *v: nn.batch_norm(x, *v, axis=1, epsilon=1e-5, training=False)[0], x86.schedule_batch_norm, (IMAGE, *[_draw(8) ** 2 for _ in range(4)]), lambda x, *v: ref.batch_norm(x, *v, 1, 1e-5, True, True, False, 0.1)[0]),
    "sparse_transpose": (nn.sparse_transpose, g.schedule_sparse_transpose, (np.array([1, 2, 3], "float32"), np.array([2, 0, 1], "int32"), np.array([0, 1, 3, 3], "int32")), lambda *a: np.array([2, 3, 1], "float32")),
    "sparse_conv2d": (lambda x, *m: nn.sparse_conv2d(x, *m), g.schedule_sparse_conv2d, (LAST, *BLOCKS), lambda x, *m: x @ _dense_of(*m).T),
    "argwhere": (lambda c: topi.argwhere((int(CONDITION.sum()), 2), c), g.schedule_argwhere, (CONDITION,), np.argwhere),
    "unique": (lambda d: topi.unique(d), g.schedule_unique, (np.array([3, 1, 3, 7], "int32"),), lambda d: np.array([1, 3, 7, 0])),
    "collapse_sum": (lambda d: topi.collapse_sum(d, (6, 1)), g.schedule_reduce, (IMAGE,), lambda d: d.sum((0, 1, 3))[:, None]),
    "reorg": (lambda d: vision.reorg(d, 2), g.schedule_reorg, (_draw(1, 8, 4, 6),), lambda d: ref.reorg_python(d, 2)),
    "roi_align_nhwc": (lambda d, r: vision.roi_align_nhwc(d, r, (2, 3), 0.4, "avg", 2), g.schedule_roi_align, (LAST, REGIONS), lambda d, r: ref.roi_align_nhwc_python(d, r, (2, 3), 0.4, 2, b"avg")),
    "roi_pool_nchw": (lambda d, r: vision.roi_pool_nchw(d, r, 2, 0.5), g.schedule_roi_pool, (IMAGE, REGIONS), lambda d, r: ref.roi_pool_nchw_python(d, r, 2, 0.5)),
    "trilu": (lambda d: topi.trilu(d, te.const(1, "int32"), False), g.schedule_injective, (ROWS,), lambda d: _triangle(d, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_references(name: str) -> None:
    compute, schedule, arrays, expected = PROGRAMS[name]
    tensors = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    with tvm.target.Target("llvm"):
        made = compute(*tensors)
        outs = [made] if isinstance(made, te.Tensor) else list(made)
        function = tvm.build(schedule(outs), [*tensors, *outs], "llvm")
    found = [tvm.nd.array(np.zeros([int(d) for d in out.shape], out.dtype)) for out in outs]
    function(*[tvm.nd.array(a) for a in arrays], *found)
    wanted = expected(*arrays)
    assert found[0].shape == np.shape(wanted)
    np.testing.assert_allclose(found[0].numpy(), wanted, rtol=1e-3, atol=1e-4)


def _outputs(compute: Callable[..., Any], schedule: Any, *arrays: Array) -> list[Array]:
    tensors = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    made = compute(*tensors)
    outs = [made] if isinstance(made, te.Tensor) else list(made)
    function = tvm.build(schedule(outs), [*tensors, *outs], "llvm")
    found = [tvm.nd.array(np.zeros([int(d) for d in out.shape], out.dtype)) for out in outs]
    function(*[tvm.nd.array(a) for a in arrays], *found)
    return [f.numpy() for f in found]


def test_suppression_of_the_classic_example() -> None:
    rows = np.array([[[0, 0.8, 1, 20, 25, 45], [1, 0.7, 30, 60, 50, 80], [0, 0.4, 4, 21, 19, 40],
                      [2, 0.9, 35, 61, 52, 79], [1, 0.5, 100, 60, 70, 110]]], "float32")  # fmt: skip
    count, names = np.array([4], "int32"), np.array([[0, 1, 3, 4, -1]], "int32")
    options = (-1, 0.7, True, 2, 2, 1, 0)
    (kept,) = _outputs(lambda *t: vision.non_max_suppression(*t, *options, False), g.schedule_nms, rows, count, names)  # fmt: skip
    np.testing.assert_array_equal(kept[0, :2], rows[0, [3, 0]])
    assert (kept[0, 2:] == -1).all()
    chosen, number = _outputs(lambda *t: vision.non_max_suppression(*t, *options), g.schedule_nms, rows, count, names)  # fmt: skip
    assert chosen.tolist() == [[4, 0, -1, -1, -1]] and number.tolist() == [[2]]
    counts, moved, _ = _outputs(lambda x: vision.get_valid_counts(x, 0.6), g.schedule_get_valid_counts, rows)  # fmt: skip
    assert counts.tolist() == [3]
    np.testing.assert_array_equal(moved[0, :3], rows[0, [0, 1, 3]])


def test_detections_of_single_shot_networks() -> None:
    (priors,) = _outputs(
        lambda x: vision.ssd.multibox_prior(x, (0.5, 0.25), (1, 2)),
        g.schedule_multibox_prior,
        IMAGE,
    )
    assert priors.shape == (1, 6 * 5 * 3, 4)
    np.testing.assert_allclose(priors[0, 0], [0.1 - 0.3, 1 / 12 - 0.25, 0.1 + 0.3, 1 / 12 + 0.25], rtol=1e-5)  # fmt: skip
    chances = RNG.uniform(size=(1, 3, 90)).astype("float32")
    arrays = (chances, _draw(1, 360) * 0.1, priors)
    rows, counts = _outputs(lambda *t: vision.ssd.multibox_transform_loc(*t, threshold=0.5), g.schedule_multibox_transform_loc, *arrays)  # fmt: skip
    # background wins for nobody: the best of the other classes counts where it is large enough
    assert counts[0] == (chances[0, 1:].max(0) >= 0.5).sum()
    assert (rows[0, counts[0] :] == -1).all()
    (found,) = _outputs(lambda *t: vision.ssd.multibox_detection(*t, threshold=0.5), g.schedule_multibox_detection, *arrays)  # fmt: skip
    kept = found[0][found[0, :, 0] >= 0]
    assert 0 < len(kept) <= counts[0] and (np.diff(kept[:, 1]) <= 0).all()


def test_regions_lie_within_the_image() -> None:
    arrays = (_draw(1, 6, 4, 4), _draw(1, 12, 4, 4) * 0.1, np.array([[64, 60, 1]], "float32"))
    (regions,) = _outputs(
        lambda *t: vision.proposal(*t, (4,), (0.5, 1, 2), 16, 0.7, 40, 6, 8, False),
        g.schedule_proposal, *arrays,
    )  # fmt: skip
    assert regions.shape == (6, 5) and (regions[:, 0] == 0).all()


def test_sparse_rows_are_filled() -> None:
    indices, values = np.array([[0, 1], [2, 0]], "int64"), np.array([5, 6], "int64")
    shape, default = np.array([3, 2], "int64"), np.array([9], "int64")
    tensors = [te.placeholder(a.shape, "int64") for a in (indices, values, shape, default)]
    made = topi.sparse_fill_empty_rows(*tensors, (4, 2), (4,), (3,))
    assert isinstance(g.schedule_sparse_fill_empty_rows(list(made)), te.Schedule)


def test_helpers_of_shapes_and_constants() -> None:
    utils, n = topi.utils, te.var("n")
    two = te.const(2, "int32")
    assert (utils.get_const_int(two * 3), utils.get_const_float(te.const(1.5, "float32"))) == (
        6,
        1.5,
    )
    assert utils.equal_const_int(two, 2) and not utils.equal_const_int(n, 2)
    assert utils.get_float_tuple((1, te.const(0.5, "float32"))) == (1.0, 0.5)
    assert utils.ravel_index((1, 2), (3, 4)) == 6
    assert (utils.get_max_power2_factor(24), utils.get_max_power2_factor(64, 16)) == (8, 16)
    assert utils.is_empty_shape((3, 0)) and not utils.is_empty_shape((3, n))
    assert utils.is_dynamic_shape((3, n)) and not utils.is_dynamic_shape((3, two))
    assert issubclass(utils.InvalidShapeError, ValueError)
    with tvm.target.Target("llvm"):
        assert utils.is_target("cpu") and not utils.is_target(["cuda", "rocm"])
    with pytest.raises(ValueError, match="a constant integer is required here, got n"):
        utils.get_const_int(n)


def test_tags_tell_what_may_be_inlined() -> None:
    x = te.placeholder((4, 4))
    scaled = topi.add(topi.exp(x), 1.0)
    assert topi.tag.is_broadcast(scaled.op.tag) and topi.tag.is_injective(topi.transpose(x).op.tag)
    assert not topi.tag.is_injective(topi.sum(x).op.tag)
    with te.tag_scope(topi.tag.INJECTIVE):
        marked = te.compute((4, 4), lambda i, j: scaled[j, i])
    total = topi.sum(marked)
    s, met = te.create_schedule(total.op), []
    topi.utils.traverse_inline(s, total.op, lambda op: met.append(op.name))
    assert met[-1] == total.op.name and len(met) == 4
    text = str(tvm.lower(s, [x, total], simple_mode=True))
    assert "T.exp(" in text and "T_exp" not in text


def test_schedules_of_references_follow_the_target() -> None:
    assert ref.get_reduce_schedule("llvm") is x86.schedule_reduce
    compute, schedule = ref.get_conv2d_nchw_implement("llvm")
    out = compute(te.placeholder((1, 3, 5, 5)), te.placeholder((4, 3, 3, 3)), 1, 1, 1)
    assert isinstance(schedule([out]), te.Schedule)

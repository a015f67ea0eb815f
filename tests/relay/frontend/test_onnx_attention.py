"""Attention of com.microsoft beside ONNX Runtime: masks, caches, groups, rotary positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tvm.contrib import onnx_backend

from .test_onnx_microsoft import check, f32, i8, steps, u8


def i32(*values: int) -> np.ndarray:
    return np.array(values, "int32")


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(unidirectional: int) -> None:
    check("Attention", [f32(2, 5, 8), f32(8, 24), f32(24)], num_heads=2,
          unidirectional=unidirectional)  # fmt: skip


@pytest.mark.parametrize(
    "mask",
    [
        np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "int32"),
        np.tril(np.ones((2, 5, 5), "int32")),
        i32(3, 5),
        i32(3, 5, 1, 0),
    ],
    ids=["keys", "pairs", "ends", "ends_and_begins"],
)
def test_attention_has_masks_of_keys(mask: np.ndarray) -> None:
    check("Attention", [f32(2, 5, 8), f32(8, 24), f32(24), mask], num_heads=2)


def test_attention_continues_a_cache() -> None:
    past = f32(2, 2, 2, 3, 4)
    check("Attention", [f32(2, 2, 8), f32(8, 24), f32(24), None, past], num_heads=2, outputs=2,
          unidirectional=1)  # fmt: skip


def test_quantised_attention() -> None:
    step, zero = np.array(0.02, "float32"), np.array(120, "uint8")
    weight, none = i8(8, 24), np.array(0, "int8")
    values = [u8(2, 5, 8), weight, f32(24), step, steps(1).reshape(()), i32(4, 5), zero, none]
    check("QAttention", values, num_heads=2)


def test_many_heads_attend() -> None:
    check("MultiHeadAttention", [f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8), f32(24)], num_heads=2)
    cross = [f32(2, 3, 8), f32(2, 2, 5, 4), f32(2, 2, 5, 4)]
    check("MultiHeadAttention", cross, num_heads=2)


def test_packed_inputs_are_taken_apart() -> None:
    q, k, v = [f32(2, 5, 8) for _ in range(3)]
    heads = [x.reshape(2, 5, 2, 4) for x in (q, k, v)]
    node = helper.make_node(
        "MultiHeadAttention", ["q", "k", "v"], ["y"], domain="com.microsoft", num_heads=2
    )
    wanted = onnx_backend.run_node(node, [q, k, v]).y
    for given in ([np.stack(heads, 3)], [q, np.stack(heads[1:], 3)]):
        del node.input[:]
        node.input.extend(["q", "k"][: len(given)])
        np.testing.assert_allclose(onnx_backend.run_node(node, given).y, wanted, rtol=1e-5)


def test_many_heads_continue_a_cache() -> None:
    x, past = [f32(2, 3, 8) for _ in range(3)], [f32(2, 2, 4, 4) for _ in range(2)]
    added = f32(1, 2, 3, 7)
    check("MultiHeadAttention", [*x, None, None, added, *past], num_heads=2, outputs=3)
    check("MultiHeadAttention", [*x, f32(24), None, None, *past], num_heads=2, outputs=3,
          unidirectional=1)  # fmt: skip


def group(
    length: int, total: int, seqlens: list[int], room: int, inputs: dict[int, Any] | None = None,
    packed: bool = False, **attrs: Any,
) -> None:  # fmt: skip
    """Four heads of sixteen numbers that share two of keys and values."""
    batch = len(seqlens)
    q = f32(batch, length, 128) if packed else f32(batch, length, 64)
    kv = [None, None] if packed else [f32(batch, length, 32) for _ in range(2)]
    past = [f32(batch, 2, room, 16) for _ in range(2)]
    values: list[Any] = [q, *kv, *past, i32(*seqlens), None, f32(20, 8), f32(20, 8)]
    values += [None] * (16 - len(values))
    for index, value in (inputs or {}).items():
        values[index] = value
    while values[-1] is None and len(values) > 9:
        values.pop()
    check("GroupQueryAttention", values, {6: np.array(total, "int32")}, outputs=3, num_heads=4,
          kv_num_heads=2, **attrs)  # fmt: skip


def test_groups_attend_to_a_prompt() -> None:
    group(5, 5, [4, 4], 0, do_rotary=1)
    group(5, 5, [4], 0, packed=True, do_rotary=1, rotary_interleaved=1)
    group(5, 5, [4], 0, causal=0)


def test_groups_continue_caches() -> None:
    group(1, 7, [6], 6, do_rotary=1)
    group(3, 7, [6], 4, do_rotary=1)
    group(1, 7, [6, 4], 6, do_rotary=1)
    group(1, 7, [6, 4], 12)


def test_groups_have_windows_caps_and_sinks() -> None:
    group(5, 5, [4, 4], 0, local_window_size=2)
    group(1, 7, [6, 6], 6, softcap=2.0, scale=0.5)
    group(5, 5, [4, 4], 0, smooth_softmax=1)
    group(5, 5, [4, 4], 0, {11: f32(4)})
    group(5, 5, [4, 4], 0, {10: f32(1, 4, 5, 5)})


def test_groups_normalise_queries_and_keys() -> None:
    def node(*names: str) -> onnx.NodeProto:
        return helper.make_node(
            "GroupQueryAttention", names, ["y"], domain="com.microsoft", num_heads=2, kv_num_heads=2
        )

    q, k, v, weight = f32(1, 5, 32), f32(1, 5, 32), f32(1, 5, 32), f32(16)
    rest = [i32(4), np.array(5, "int32")]
    names = ["q", "k", "v", "", "", "ends", "total"]
    q1, k1 = [_normalised(x.reshape(1, 5, 2, 16)).reshape(x.shape) for x in (q, k)]
    q1, k1 = q1 * np.tile(weight, 2), k1 * np.tile(weight, 2)
    wanted = onnx_backend.run_node(node(*names), [q1, k1, v, *rest]).y
    with_weights = node(*names, *[""] * 7, "wq", "wk")
    found = onnx_backend.run_node(with_weights, [q, k, v, *rest, weight, weight]).y
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def _normalised(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    positions = np.array([[0, 2, 1]])
    check("RotaryEmbedding", [f32(1, 2, 3, 8), positions, f32(4, 4), f32(4, 4)],
          interleaved=interleaved)  # fmt: skip
    check("RotaryEmbedding", [f32(2, 3, 16), np.array([1]), f32(4, 2), f32(4, 2)],
          interleaved=interleaved, num_heads=2, rotary_embedding_dim=4)  # fmt: skip


def test_caches_have_room_for_more() -> None:
    x, caches = [f32(2, 1, 8) for _ in range(3)], [f32(2, 2, 7, 4) for _ in range(2)]
    for held in (0, 3):
        given = [*x, None, None, None, *caches, i32(held)]
        check("MultiHeadAttention", given, num_heads=2, outputs=3)
        mask = np.ones((2, held + 1), "int32")
        decoder = [*x, mask, None, *caches, i32(held), None, None, f32(24)]
        check("DecoderMaskedMultiHeadAttention", decoder, num_heads=2, outputs=3,
              past_present_share_buffer=1)  # fmt: skip


def test_beams_share_a_cache() -> None:
    x, caches = [f32(4, 1, 8) for _ in range(3)], [f32(4, 2, 6, 4) for _ in range(2)]
    beams = np.random.default_rng(3).integers(0, 2, (2, 2, 6)).astype("int32")
    beams[:, :, 3:] = np.array([[0], [1]])
    rows = beams[:, :, :, None] + 2 * np.arange(2)[:, None, None, None]
    own = [
        np.take_along_axis(x, rows.reshape(4, 1, 6, 1).repeat(2, 1).repeat(4, 3), 0)[:, :, :3]
        for x in caches
    ]

    def attend(names: list[str], inputs: list[np.ndarray], **attrs: int) -> np.ndarray:
        node = helper.make_node("DecoderMaskedMultiHeadAttention", names, ["y"],
                                domain="com.microsoft", num_heads=2, **attrs)  # fmt: skip
        return onnx_backend.run_node(node, inputs).y

    names = ["q", "k", "v", "", "", "pk", "pv"]
    shared = [*x, *caches, i32(3), i32(2), beams]
    found = attend([*names, "n", "w", "c"], shared, past_present_share_buffer=1)
    np.testing.assert_allclose(found, attend(names, [*x, *own]), rtol=1e-5, atol=1e-5)


def test_products_of_queries_and_keys_come_out() -> None:
    q, k, bias = f32(2, 3, 8), f32(2, 5, 8), f32(2, 2, 3, 5)
    node = helper.make_node("MultiHeadAttention", ["q", "k", "v", "", "", "b"],
                            ["y", "", "", "s"], domain="com.microsoft", num_heads=2)  # fmt: skip
    found = onnx_backend.run_node(node, [q, k, k, bias])[-1]
    rows, columns = [x.reshape(2, -1, 2, 4).transpose(0, 2, 1, 3) for x in (q, k)]
    wanted = rows @ columns.swapaxes(2, 3) / 2 + bias
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", ["Attention", "DecoderMaskedSelfAttention"])
def test_decoder_attends_to_itself_or_to_an_encoder(op: str) -> None:
    past = f32(2, 2, 2, 5, 4)
    x, weight, bias = f32(2, 1, 8), f32(8, 24), f32(24)
    node = helper.make_node(
        op, ["x", "w", "b", "", "p", "", "n"], ["y", "z"],
        domain="com.microsoft", num_heads=2, past_present_share_buffer=1,
    )  # fmt: skip
    full = helper.make_node(
        "Attention", ["x", "w", "b", "", "p"], ["y", "z"], domain="com.microsoft", num_heads=2
    )
    found = onnx_backend.run_node(node, [x, weight, bias, past, i32(3)])
    wanted = onnx_backend.run_node(full, [x, weight, bias, past[:, :, :, :3]])
    np.testing.assert_allclose(found.y, wanted.y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.z[:, :, :, :4], wanted.z, rtol=1e-5, atol=1e-5)
    cross = [f32(2, 1, 8), f32(2, 2, 5, 4), f32(2, 2, 5, 4)]
    check("DecoderMaskedMultiHeadAttention", cross, num_heads=2)

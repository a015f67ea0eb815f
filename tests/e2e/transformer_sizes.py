"""Sizes of transformers that are small enough to test."""

from __future__ import annotations

from typing import Any

Sizes = dict[str, Any]

TEXT: Sizes = {
    "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 64,
}  # fmt: skip
KEYS: Sizes = {**TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "head_dim": 8}
IMAGE: Sizes = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
WAVES: Sizes = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "conv_dim": (16, 16), "conv_stride": (4, 2), "conv_kernel": (8, 3),
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 4, "vocab_size": 20,
}  # fmt: skip

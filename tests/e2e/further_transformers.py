"""More transformers: words, and those that detect, segment, forecast, speak or take several inputs."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.networks import Example

from .transformer_sizes import IMAGE, KEYS, TEXT
from .transformers_zoo import _BOTH, _BOTH_IDS, _DETR, _EXPERTS, _IDS, _LARGE, _SMALL, _model

_SERIES = {"prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2], "d_model": 16,
    "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_time_features":
    2}  # fmt: skip
_SERIES_IN = {"past_values": (False, (1, 10)), "past_time_features": (False, (1, 10, 2)),
    "past_observed_mask": (False, (1, 10)), "future_values": (False, (1, 4)),
    "future_time_features": (False, (1, 4, 2))}  # fmt: skip
_RESNET = {"model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 24, 32, 40], "depths":
    [1, 1, 1, 1], "layer_type": "basic", "out_features": ["stage2", "stage3", "stage4"]}  # fmt: skip
_SWIN = {"model_type": "swin", "image_size": 64, "patch_size": 4, "embed_dim": 16, "depths": [1, 1,
    1, 1], "num_heads": [1, 2, 4, 8], "window_size": 4, "out_features": ["stage1", "stage2",
    "stage3", "stage4"]}  # fmt: skip
_TWO = {"text_config": dict(TEXT), "vision_config": dict(IMAGE),
    "projection_dim": 16}  # fmt: skip

FURTHER_TRANSFORMERS: dict[str, Callable[[], Example]] = {
    "squeezebert": _model("SqueezeBert", {**TEXT, "embedding_size": 32}, _IDS),
    "eurobert": _model("EuroBert", KEYS, _IDS),
    "xglm": _model("XGLM", {"vocab_size": 100, "d_model": 32, "num_layers": 2, "attention_heads": 4,
         "ffn_dim": 64, "max_position_embeddings": 64}, _IDS),
    "xlm_roberta_xl": _model("XLMRobertaXL", TEXT, _IDS),
    "dpr": _model("DPR", TEXT, _IDS, "pooler_output", kind="ContextEncoder"),
    "fsmt": _model("FSMT", {**_BOTH, "langs": ["en", "de"], "src_vocab_size": 100, "tgt_vocab_size":
         100, "pad_token_id": 1}, _BOTH_IDS),
    "trocr": _model("TrOCR", {"vocab_size": 100, "d_model": 32, "decoder_layers": 1,
         "decoder_attention_heads": 4, "decoder_ffn_dim": 64, "max_position_embeddings": 64}, _IDS,
         "logits", kind="ForCausalLM"),
    "modernbert_decoder": _model("ModernBertDecoder", {**TEXT, "pad_token_id": 0, "bos_token_id":
         1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}, _IDS),
    "falcon_h1": _model("FalconH1", {**KEYS, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head":
         8, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 4}, _IDS),
    "nemotron_h": _model("NemotronH", {**KEYS, "layers_block_type": ["mamba", "attention"],
         "mamba_num_heads": 4, "mamba_head_dim": 8, "ssm_state_size": 8, "n_groups": 1,
         "chunk_size": 4}, _IDS),
    "kimi_linear": _model("KimiLinear", _EXPERTS, _IDS),
    "olmo_hybrid": _model("OlmoHybrid", KEYS, _IDS),
    "glm4_moe": _model("Glm4Moe", {**_EXPERTS, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
         "first_k_dense_replace": 1}, _IDS),
    "hunyuan_moe": _model("HunYuanMoEV1", _EXPERTS, _IDS),
    "flex_olmo": _model("FlexOlmo", _EXPERTS, _IDS),
    "lfm2_moe": _model("Lfm2Moe", {**_EXPERTS, "layer_types": ["conv", "full_attention"],
         "num_dense_layers": 1}, _IDS),
    "longcat_flash": _model("LongcatFlash", {**TEXT, "num_layers": 1, "num_key_value_heads": 4,
         "ffn_hidden_size": 32, "expert_ffn_hidden_size": 16, "n_routed_experts": 4,
         "zero_expert_num": 2, "moe_topk": 2, "q_lora_rank": 16, "kv_lora_rank": 16,
         "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "head_dim": 8}, _IDS),
    "granitemoeshared": _model("GraniteMoeShared", {**_EXPERTS, "shared_intermediate_size": 32},
         _IDS),
    "t5gemma": _model("T5Gemma", {"encoder": KEYS, "decoder": KEYS}, _BOTH_IDS),
    "gte": _model("Gte", TEXT, _IDS),
    "decision_transformer": _model("DecisionTransformer", {"state_dim": 5, "act_dim": 3,
         "hidden_size": 32, "n_layer": 2, "n_head": 4, "max_ep_len": 128}, {"states": (False, (1, 4,
         5)), "actions": (False, (1, 4, 3)), "rewards": (False, (1, 4, 1)), "returns_to_go": (False,
         (1, 4, 1)), "timesteps": (True, (1, 4))}, "action_preds"),
    "time_series": _model("TimeSeriesTransformer", _SERIES, _SERIES_IN),
    "autoformer": _model("Autoformer", {**_SERIES, "label_length": 2}, _SERIES_IN),
    "dinov3_convnext": _model("DINOv3ConvNext", {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1,
         1, 1]}, _LARGE),
    "hgnet_v2": _model("HGNetV2", {"embedding_size": 16, "stem_channels": [3, 8, 16],
         "stage_in_channels": [16, 16, 24, 32], "stage_mid_channels": [8, 8, 8, 8],
         "stage_out_channels": [16, 24, 32, 40], "stage_num_blocks": [1, 1, 1, 1], "hidden_sizes":
         [16, 24, 32, 40], "depths": [1, 1, 1, 1], "stage_numb_of_layers": [2, 2, 2, 2]}, _LARGE,
         "logits", kind="ForImageClassification"),
    "swin2sr": _model("Swin2SR", {"image_size": 16, "patch_size": 1, "embed_dim": 16, "depths": [2],
         "num_heads": [2], "window_size": 4, "upscale": 2}, {"pixel_values": (False, (1, 3, 16,
         16))}, "reconstruction", kind="ForImageSuperResolution"),
    "zoedepth": _model("ZoeDepth", {"backbone_config": {"model_type": "beit", **IMAGE,
         "image_size": 64, "num_hidden_layers": 4, "out_indices": [1, 2, 3, 4],
         "reshape_hidden_states": False}, "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size":
         16, "bottleneck_features": 16, "num_relative_features": 8, "bin_embedding_dim": 16,
         "num_attractors": [4, 3, 2, 1], "patch_transformer_hidden_size": 16,
         "patch_transformer_intermediate_size": 32}, _LARGE, "predicted_depth",
         kind="ForDepthEstimation"),
    "superpoint": _model("SuperPoint", {"encoder_hidden_sizes": [8, 8, 16, 16],
         "decoder_hidden_size": 16, "keypoint_decoder_dim": 65, "descriptor_decoder_dim": 16}, _LARGE,
         "keypoints", kind="ForKeypointDetection"),
    "vitdet": _model("VitDet", {**IMAGE, "window_block_indices": [0], "window_size": 2,
         "residual_block_indices": [1], "use_relative_position_embeddings": True}, _SMALL),
    "vitpose": _model("VitPose", {"backbone_config": {"model_type": "vitpose_backbone",
         "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": [64,
         48], "patch_size": [16, 16]}}, {"pixel_values": (False, (1, 3, 64, 48))}, "heatmaps",
         kind="ForPoseEstimation"),
    "upernet": _model("UperNet", {"backbone_config": _SWIN, "hidden_size": 16,
         "auxiliary_in_channels": 64, "auxiliary_channels": 16, "num_labels": 3}, _LARGE, "logits",
         kind="ForSemanticSegmentation"),
    "mask2former": _model("Mask2Former", {"backbone_config": _SWIN, "feature_size": 32,
         "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 32, "encoder_layers":
         1, "decoder_layers": 2, "num_attention_heads": 2, "dim_feedforward": 32, "num_queries": 5},
         _LARGE, "masks_queries_logits", kind="ForUniversalSegmentation"),
    "maskformer": _model("MaskFormer", {"backbone_config": _SWIN, "fpn_feature_size": 32,
         "mask_feature_size": 32, "decoder_config": {"model_type": "detr", **{k: v for k, v in
         _DETR.items() if "backbone" not in k}, "d_model": 32}}, _LARGE, "masks_queries_logits",
         kind="ForInstanceSegmentation"),
    "rt_detr": _model("RTDetr", {"backbone_config": {**_RESNET, "model_type": "rt_detr_resnet"},
         "encoder_hidden_dim": 32, "encoder_in_channels": [24, 32, 40], "encoder_ffn_dim": 32,
         "encoder_attention_heads": 4, "d_model": 32, "num_queries": 10, "decoder_in_channels": [32,
         32, 32], "decoder_ffn_dim": 32, "decoder_layers": 1, "decoder_attention_heads": 4,
         "num_denoising": 0}, _LARGE, "logits", kind="ForObjectDetection"),
    "pixtral": _model("PixtralVision", {"hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8},
         _SMALL),
    "groupvit": _model("GroupViT", {"text_config": dict(TEXT), "vision_config": {"hidden_size": 32,
         "depths": [1, 1, 1], "num_hidden_layers": 3, "num_group_tokens": [4, 2, 0],
         "num_output_groups": [4, 2, 2], "num_attention_heads": 4, "intermediate_size": 64,
         "image_size": 32, "patch_size": 8}, "projection_dim": 16, "projection_intermediate_dim":
         32}, {"input_ids": (True, (2, 12)), "pixel_values": (False, (1, 3, 32, 32))},
         "logits_per_image"),
    "altclip": _model("AltCLIP", {**_TWO, "text_config": {**TEXT, "project_dim": 16}}, {"input_ids":
         (True, (2, 12)), "pixel_values": (False, (1, 3, 32, 32))}, "logits_per_image"),
    "chinese_clip": _model("ChineseCLIP", _TWO, {"input_ids": (True, (2, 12)), "pixel_values":
         (False, (1, 3, 32, 32))}, "logits_per_image"),
    "owlv2": _model("Owlv2", _TWO, {"input_ids": (True, (2, 12)), "pixel_values": (False, (1, 3, 32,
         32))}, "logits_per_image"),
    "blip": _model("Blip", _TWO, {"input_ids": (True, (2, 12)), "pixel_values": (False, (2, 3, 32,
         32))}, "logits_per_image"),
    "clipseg_vision": _model("CLIPSegVision", IMAGE, _SMALL),
    "git": _model("Git", {**TEXT, "vision_config": dict(IMAGE)}, {"input_ids": (True, (1, 12)),
         "pixel_values": (False, (1, 3, 32, 32))}),
    "x_clip_vision": _model("XCLIPVision", {**IMAGE, "mit_hidden_size": 32,
         "mit_intermediate_size": 64, "mit_num_attention_heads": 4, "num_frames": 2},
         {"pixel_values": (False, (2, 3, 32, 32))}),
    "lxmert": _model("Lxmert", {"vocab_size": 100, "hidden_size": 32, "num_attention_heads": 4,
         "intermediate_size": 64, "l_layers": 1, "x_layers": 1, "r_layers": 1, "visual_feat_dim":
         16}, {"input_ids": (True, (1, 12)), "visual_feats": (False, (1, 4, 16)), "visual_pos":
         (False, (1, 4, 4))}, "language_output"),
    "speecht5": _model("SpeechT5", {"vocab_size": 20, "hidden_size": 32, "encoder_layers": 1,
         "encoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_layers": 1,
         "decoder_attention_heads": 4, "decoder_ffn_dim": 64, "conv_dim": (16, 16), "conv_stride":
         (4, 2), "conv_kernel": (8, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
         "num_conv_pos_embedding_groups": 4}, {"input_values": (False, (1, 400)),
         "decoder_input_ids": (True, (1, 6))}, "logits", kind="ForSpeechToText"),
    "fastspeech2": _model("FastSpeech2Conformer", {"vocab_size": 30, "hidden_size": 32,
         "num_mel_bins": 10, "encoder_num_attention_heads": 2, "encoder_layers": 1,
         "encoder_linear_units": 32, "decoder_layers": 1, "decoder_num_attention_heads": 2,
         "decoder_linear_units": 32, "speech_decoder_postnet_layers": 2,
         "speech_decoder_postnet_units": 16, "duration_predictor_channels": 16,
         "energy_predictor_channels": 16, "pitch_predictor_channels": 16}, {"input_ids": (True, (1,
         6))}, "spectrogram"),
    "seggpt": _model("SegGpt", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "image_size": [32, 16], "patch_size": 8, "intermediate_hidden_state_indices": [0, 1],
         "merge_index": 0, "pretrain_image_size": 32, "mlp_dim": 64, "decoder_hidden_size": 8},
         {"pixel_values": (False, (1, 3, 16, 16)), "prompt_pixel_values": (False, (1, 3, 16, 16)),
         "prompt_masks": (False, (1, 3, 16, 16))}),
}  # fmt: skip

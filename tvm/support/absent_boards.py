"""Modules for accelerators, boards and formats of other frameworks: their functions by module.

Programs import them at their head; who calls one is told what there is instead.
"""

from __future__ import annotations

BOARDS = (
    "code is generated for processors, by the targets llvm and c; `tvmc compile --target c "
    "--output-format mlf` writes C sources, from which projects for microcontrollers can be made"
)
FORMATS = (
    "models of this format are converted to ONNX first, which relay.frontend.from_onnx imports"
)

# module -> its functions and classes; a module with others below it is a package
_HEXAGON = {
    "": "allocate_hexagon_array register_linker hexagon_link pack_imports",
    "build": "HexagonLauncher HexagonLauncherRPC HexagonLauncherSimulator",
    "generate_take_op": "PassReplaceWithTakeOpPrimFuncs",
    "hexagon_profiler": "HexagonProfiler",
    "hexagon_unary_ops": "generate_take_primfunc get_lut hardswish_func saturate",
    "meta_schedule": "get_hexagon_local_builder get_hexagon_rpc_runner",
    "pytest_plugin": "requires_hexagon_toolchain",
    "session": "Session",
    "tools": "create_aot_shared create_shared link_shared pack_imports",
    "transform": (
        "ir_lower_vtcm_pass remove_empty_pad rewrite_qdistilbert simplify_conv_pat simplify_qnn_concat"
    ),
}
_CASCADER = {
    "": (
        "BlockConfig CascaderGraph CascaderOptions EthosuDeviceConfig EthosuPart InlinePart MemoryRegion "
        "Part Plan Propagator StripeConfig TESubgraph Tensor TensorConfig cascade create_cascader_graph"
    ),
    "device_config": "EthosuDeviceConfig _Shape",
    "graph": "Part Tensor",
    "pareto": "_get_pareto_frontier _pareto_cull_plans _thin_vector",
    "parts": "EthosuPart InlinePart",
    "plan_generator": "_generate_graph_plans _generate_output_stripe_configs _generate_single_plans",
    "proposal_generator": "generate_proposals",
    "scheduler": "cascade extract_memory_info",
    "stripe_config": "StripeConfig count_stripes",
}
_ETHOSU = {
    "": "",
    "codegen": (
        "IdentityOptimizer LUTsOptimizer LayoutOptimizer OutlineCompilerFunctions SCHEDULER "
        "_calculate_memory_pressure _create_cascader extract_memory_info relay_to_tir replicate_pads"
    ),
    "legalize": (
        "AbsRewriter AddRewriter AvgPoolingRewriter ChannelPadRewriter ConcatRewriter "
        "Conv2DRewriter Conv2DTransposeRewriter DepthwiseConv2DRewriter ExpandDimsRewriter "
        "FullyConnectedRewriter HardSwishRewriter LeakyReLURewriter LegalizeEthosU MatMulRewriter "
        "MaxPoolingRewriter MaxRewriter MeanRewriter MinRewriter MulRewriter NoOpRewriter PadRewriter "
        "PartitionedSplitRewriter RequantizeRewriter ReshapeRewriter Resize2dRewriter ShlRewriter "
        "SigmoidRewriter SoftmaxRewriter SplitRewriter SqueezeRewriter StridedSliceRewriter "
        "SubRewriter SumRewriter TanhFixedPointRewriter TanhRewriter"
    ),
    "op": (
        "ethosu_binary_elementwise ethosu_conv2d ethosu_depthwise_conv2d ethosu_identity "
        "ethosu_pooling ethosu_unary_elementwise"
    ),
    "preprocess": "preprocess_ext_io",
    "te": "",
    "te.binary_elementwise": "binary_elementwise_compute match_ethosu_binary_elementwise",
    "te.common": "get_layout_transform_matrices",
    "te.convolution": "conv2d_compute match_ethosu_conv2d",
    "te.depthwise": "depthwise_conv2d_compute match_ethosu_depthwise_conv2d",
    "te.identity": "identity_compute match_ethosu_identity",
    "te.inline": "match_ethosu_inline",
    "te.pooling": "match_ethosu_pooling pooling_compute",
    "te.unary_elementwise": "match_ethosu_unary_elementwise unary_elementwise_compute",
    "tir": "",
    "tir.compiler": "LowerToTIR _lower_to_tir extract_constants lower_to_te lower_to_tir",
    "tir.dma": "Tiles create_tiles",
    "tir.passes": "CopyComputeReordering HoistAllocates MergeConstants",
    "tir.scheduler": (
        "OperatorCompute copy_constants copy_luts inline_no_ops schedule_cache_reads "
        "schedule_pragmas tile_nd total_cascader"
    ),
    "tir.spec": (
        "SerialActivation SerialBinaryElementwise SerialBlockConfig SerialFeatureMap SerialKernel "
        "SerialPadding SerialPooling SerialRescaleConfig SerialUnaryElementwise"
    ),
    "tir_to_cs_translator": (
        "BufferType analyze_scratch_memory_acesses assign_addresses extract_buffer_info translate "
        "translate_ethosu_binary_elementwise translate_ethosu_conv2d "
        "translate_ethosu_depthwise_conv2d translate_ethosu_pooling translate_ethosu_tir_call_extern"
    ),
    "util": "get_range_for_dtype_str is_named_ethosu_op round_up",
    "vela_api": (
        "_find_block_config_with_vela _get_optimal_block_config compress_weights encode_weights "
        "get_optimal_block_config pack_biases"
    ),
}
_MICRO = {
    "": (
        "AutoTvmModuleLoader Session autotvm_build_func copy_crt_config_header "
        "create_local_aot_executor create_local_debug_executor create_local_graph_executor "
        "generate_project get_microtvm_template_projects"
    ),
    "project": "GeneratedProject TemplateProject generate_project generate_project_from_mlf",
    "project_api": "",
    "project_api.client": "ProjectAPIClient UnsupportedProtocolVersionError instantiate_from_dir",
    "project_api.server": "ProjectAPIHandler ProjectAPIServer default_project_options main",
    "session": (
        "Session create_local_aot_executor create_local_debug_executor create_local_graph_executor"
    ),
    "transport": "Transport TransportLogger",
}
_FRONTENDS = {
    "": (
        "from_caffe from_caffe2 from_coreml from_darknet from_keras from_mxnet from_oneflow "
        "from_paddle from_tensorflow from_tflite"
    ),
    "caffe": "from_caffe",
    "caffe2": "from_caffe2",
    "coreml": "from_coreml",
    "darknet": "from_darknet",
    "keras": "from_keras",
    "mxnet": "from_mxnet",
    "mxnet_qnn_op_utils": (
        "dequantize_mxnet_min_max get_mkldnn_int8_scale get_mkldnn_uint8_scale "
        "quantize_conv_bias_mkldnn_from_var quantize_mxnet_min_max"
    ),
    "oneflow": "from_oneflow",
    "paddlepaddle": "from_paddle",
    "tensorflow": "from_tensorflow",
    "tensorflow2": "from_tensorflow",
    "tflite": "OperatorConverter from_tflite get_pad_value",
}
_MODELS = {
    "tf": (
        "AddShapesToGraphDef NodeLookup ProcessGraphDefParam do_tf_sample get_config get_workload "
        "get_workload_official get_workload_ptb pick_from_weight vmobj_to_list"
    ),
    "tflite": "TFLiteModel",
}
_TESTING = {"aot": "convert_to_relay create_relay_module_and_inputs_from_tflite_file"}
_LIBRARIES = {
    "mrvl": (
        "clean_up_sim compile_model convert_json_to_bin delete_temp_files find_value_in_KV_pair "
        "get_nodes_json_string get_temp_dir get_working_dir modify_const_names run_simulation "
        "search_path write_json_file"
    ),
    "sdaccel": "compile_vhls",
}
# what there is instead, and the modules below a package
GROUPS: dict[str, tuple[str, dict[str, str]]] = {
    "tvm.contrib": (BOARDS, _LIBRARIES),
    "tvm.contrib.hexagon": (BOARDS, _HEXAGON),
    "tvm.contrib.ethosu": (BOARDS, {"": ""}),
    "tvm.contrib.ethosu.cascader": (BOARDS, _CASCADER),
    "tvm.relay.backend.contrib.ethosu": (BOARDS, _ETHOSU),
    "tvm.micro": (BOARDS, _MICRO),
    "tvm.relay.frontend": (FORMATS, _FRONTENDS),
    "tvm.relay.testing": (FORMATS, _MODELS),
    "tvm.testing": (FORMATS, _TESTING),
}

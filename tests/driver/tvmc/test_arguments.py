"""The pieces that read arguments, one by one."""

from __future__ import annotations

import argparse
import types

import numpy as np
import pytest

from tvm.driver.tvmc import TVMCException, TVMCResult
from tvm.driver.tvmc.config_options import convert_config_json_to_cli
from tvm.driver.tvmc.pass_config import load_function, parse_configs
from tvm.driver.tvmc.pass_list import parse_pass_list_str
from tvm.driver.tvmc.result_utils import get_top_results
from tvm.driver.tvmc.runner import generate_tensor_data, make_inputs_dict
from tvm.driver.tvmc.shape_parser import parse_shape_string
from tvm.driver.tvmc.target import parse_target, target_from_cli, tokenize_target
from tvm.driver.tvmc.tracker import tracker_host_port_from_cli
from tvm.driver.tvmc.workspace_pools import (
    generate_workspace_pools_args,
    workspace_pools_recombobulate,
)
from tvm.ir.memory_pools import WorkspaceMemoryPools
from tvm.relay.ty import Any
from tvm.target import Target


def test_shapes_are_read_by_name() -> None:
    found = parse_shape_string("data:[1,3,224,224] 'a b':[2] scalar:[]  x/y:0:[1,-1]")
    assert list(found) == ["data", "a b", "scalar", "x/y:0"]
    assert found["data"] == [1, 3, 224, 224] and found["scalar"] == []
    assert found["x/y:0"][0] == 1 and isinstance(found["x/y:0"][1], Any)


@pytest.mark.parametrize("text", ["", "data", "data:1,2", "data:[1,2", "data:[a]", "a:[1] a:[2]"])
def test_malformed_shapes_are_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="--input-shapes"):
        parse_shape_string(text)


def test_targets_are_parsed_into_parts() -> None:
    (part,) = parse_target("llvm -device=arm_cpu -mattr=+fp16,+neon")
    assert part["name"] == "llvm" and part["is_tvm_target"]
    assert part["opts"] == {"device": "arm_cpu", "mattr": "+fp16,+neon"}
    assert [p["name"] for p in parse_target("cuda -arch=sm_80, llvm")] == ["cuda", "llvm"]
    assert tokenize_target('c -a="x, y", llvm') == ["c", '-a="x, y"', ",", "llvm"]


def test_second_target_is_the_host() -> None:
    target, extra = target_from_cli("cuda, llvm -mcpu=haswell")
    assert str(target.kind) == "cuda" and target.host.mcpu == "haswell" and extra == []


def test_options_of_targets_are_joined() -> None:
    target, _ = target_from_cli("llvm -mcpu=haswell", {"llvm": {"num-cores": 3}})
    assert target.mcpu == "haswell" and target.attrs["num-cores"] == 3


def test_targets_come_from_files(tmp_path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"kind": "llvm", "mcpu": "znver4"}')
    assert target_from_cli(str(path))[0].mcpu == "znver4"


def test_pass_configurations_have_types() -> None:
    found = parse_configs(["tir.disable_vectorize=true", "relay.FuseOps.max_depth=5"])
    assert found == {"tir.disable_vectorize": True, "relay.FuseOps.max_depth": 5}
    assert parse_configs(["tir.UnrollLoop=auto_max_step=16,explicit_unroll=0"]) == {
        "tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": 0}
    }
    assert parse_configs(["tir.add_lower_pass=1,os.path.join"])["tir.add_lower_pass"][0][0] == 1
    assert parse_configs(None) == {}


def test_functions_are_found_by_name() -> None:
    assert isinstance(load_function("os.path.join"), types.FunctionType)
    with pytest.raises(TVMCException, match="there is no function"):
        load_function("os.path.nothing")


def test_lists_of_passes_are_checked() -> None:
    assert parse_pass_list_str("FuseOps, FoldConstant") == ["FuseOps", "FoldConstant"]
    assert parse_pass_list_str("") == []


def test_configurations_become_options() -> None:
    found = convert_config_json_to_cli({
        "targets": [{"kind": "cmsis-nn"}, {"kind": "c", "mcpu": "cortex-m55"}],
        "executor": {"kind": "aot", "interface-api": "c"},
        "pass-config": {"tir.disable_vectorize": "1"},
        "opt-level": "2",
    })  # fmt: skip
    assert found == {
        "target": "cmsis-nn, c", "target_c_mcpu": "cortex-m55", "executor": "aot",
        "executor_aot_interface_api": "c", "pass_config": ["tir.disable_vectorize=1"],
        "opt_level": "2",
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "float16", "bfloat16"])
def test_inputs_are_filled(dtype: str) -> None:
    assert (generate_tensor_data((2, 3), dtype, "zeros") == 0).all()
    assert (generate_tensor_data((2, 3), dtype, "ones") == 1).all()
    random = generate_tensor_data((2, 3), dtype, "random")
    assert random.shape == (2, 3) and str(random.dtype) == dtype
    with pytest.raises(TVMCException, match="unknown fill-mode"):
        generate_tensor_data((1,), dtype, "noise")


def test_given_inputs_are_converted() -> None:
    found = make_inputs_dict(
        {"a": [2], "b": [1]}, {"a": "float32", "b": "int8"}, {"a": [1.0, 2.0]}, "ones"
    )
    assert found["a"].dtype == "float32" and found["b"].tolist() == [1]


def test_top_results_are_in_order() -> None:
    result = TVMCResult({"output_0": np.array([[0.1, 0.7, -1.0, 0.2]])}, None)
    assert get_top_results(result, 2).tolist() == [[1.0, 3.0], [0.7, 0.2]]


def pools_of(*argv: str) -> WorkspaceMemoryPools | None:
    parser = argparse.ArgumentParser()
    generate_workspace_pools_args(parser)
    return workspace_pools_recombobulate(parser.parse_args(argv), [Target("llvm")], None)


def test_memory_pools_have_targets_and_numbers() -> None:
    assert pools_of() is None
    found = pools_of(
        "--workspace-pools=sram,flash", "--workspace-pools-targets=sram:llvm",
        "--workspace-pools-targets=flash:llvm",
        "--workspace-pools-size-hint-bytes=sram:400,flash:500",
        "--workspace-pools-clock-frequency-hz=flash:70",
        "--workspace-pools-target-burst-bytes=sram:llvm:8",
    )  # fmt: skip
    assert found is not None
    sram, flash = found.pools
    assert (sram.pool_name, sram.size_hint_bytes, sram.clock_frequency_hz) == ("sram", 400, -1)
    assert (flash.pool_name, flash.size_hint_bytes, flash.clock_frequency_hz) == ("flash", 500, 70)
    assert [t.kind.name for t in (*sram.targets, *flash.targets)] == ["llvm", "llvm"]
    assert list(sram.target_burst_bytes.values()) == [8]


@pytest.mark.parametrize(
    "argument, complaint",
    [
        ("--workspace-pools-size-hint-bytes=dram:4", "names the pool 'dram'"),
        ("--workspace-pools-size-hint-bytes=sram:big", "requires POOL:NUMBER, got 'sram:big'"),
        ("--workspace-pools-targets=sram:cuda", "names the target 'cuda', the model has llvm"),
    ],
)
def test_memory_pools_are_checked(argument: str, complaint: str) -> None:
    with pytest.raises(TVMCException, match=complaint):
        pools_of("--workspace-pools=sram", argument)


def test_pools_require_targets_and_the_last_option_about_one_decides() -> None:
    with pytest.raises(TVMCException, match="'sram' requires targets"):
        pools_of("--workspace-pools=sram")
    twice = ("--workspace-pools-targets=sram:llvm", "--workspace-pools-size-hint-bytes=sram:8")
    found = pools_of("--workspace-pools=sram", *twice, *twice)
    assert found is not None
    assert len(found.pools[0].targets) == 1 and found.pools[0].size_hint_bytes == 8


def test_trackers_are_named_by_host_and_port() -> None:
    assert tracker_host_port_from_cli("10.0.0.1:9099") == ("10.0.0.1", 9099)
    assert tracker_host_port_from_cli("board") == ("board", 9090)
    assert tracker_host_port_from_cli(None) == (None, None)
    with pytest.raises(TVMCException, match="HOST:PORT"):
        tracker_host_port_from_cli("board:first")


def test_lower_passes_are_named_as_in_python() -> None:
    found = parse_configs(["tir.add_lower_pass=1,tir.transform.UnrollLoop"] * 2)
    assert [phase for phase, _ in found["tir.add_lower_pass"]] == [1, 1]
    assert [each.info.name for _, each in found["tir.add_lower_pass"]] == ["tir.UnrollLoop"] * 2
    assert all(each.pass_info is each.info for _, each in found["tir.add_lower_pass"])
    with pytest.raises(ModuleNotFoundError):
        parse_configs(["tir.add_lower_pass=1,no.such.module.function"])

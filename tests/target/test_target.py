"""Targets from texts, dictionaries, tags and constructors; their text; current targets; errors."""

import importlib
import json
import pickle

import pytest

import tvm
from tvm import tir
from tvm.target import Target, TargetError, target_node
from tvm.target.recorded import recorded_target


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("llvm", "llvm -keys=cpu"),
        ("llvm -mcpu=native -keys=cpu", "llvm -keys=cpu -mcpu=native"),
        ("llvm -mcpu=skylake-avx512 -mattr=+avx2,+fma", "llvm -keys=cpu -mattr=+avx2,+fma -mcpu=skylake-avx512"),
        ("llvm --num-cores=4", "llvm -keys=cpu -num-cores=4"),
        ("llvm -num-cores 4 -opt-level=2", "llvm -keys=cpu -num-cores=4 -opt-level=2"),
        ("llvm -fast-math", "llvm -keys=cpu -fast-math=1"),
        ("c", "c -keys=cpu"),
        ("cuda", "cuda -keys=cuda,gpu -arch=sm_50 -max_num_threads=1024 -thread_warp_size=32"),
        ('{"kind": "llvm", "mcpu": "znver4"}', "llvm -keys=cpu -mcpu=znver4"),
        ({"kind": "llvm", "libs": ["mkl", "dnnl"]}, "llvm -keys=cpu -libs=mkl,dnnl"),
    ],
)  # fmt: skip
def test_text_is_canonical(given: object, text: str) -> None:
    assert str(Target(given)) == text


def test_text_parses_back_to_the_same_target() -> None:
    for text in ("llvm -mcpu=haswell -mattr=+avx2", "cuda -arch=sm_80", "opencl -device=mali"):
        target = Target(text)
        assert Target(str(target)) == target
        assert Target(target.export()) == target
        assert Target(json.dumps(target.export())) == target
        assert pickle.loads(pickle.dumps(target)) == target


def test_host_is_kept_beside_the_target() -> None:
    target = Target("cuda", host="llvm -mcpu=haswell")
    assert str(target.host) == "llvm -keys=cpu -mcpu=haswell"
    assert str(target) == str(Target("cuda"))
    assert Target(target.export()).host == target.host
    assert Target(target).host == target.host
    assert target.with_host("llvm").host == Target("llvm")


def test_keys_begin_with_the_device() -> None:
    assert tvm.target.mali().keys == ("mali", "opencl", "gpu")
    assert tvm.target.arm_cpu("rasp4b").keys == ("arm_cpu", "cpu")


def test_tag_gives_a_machine() -> None:
    target = Target("nvidia/nvidia-a100")
    assert target.tag == "nvidia/nvidia-a100"
    assert target.arch == "sm_80"
    assert "nvidia/nvidia-a100" in tvm.target.list_tags()


def test_registered_tag_is_found() -> None:
    tvm.target.register_tag("test/machine", {"kind": "llvm", "mcpu": "haswell"}, override=True)
    assert Target("test/machine").mcpu == "haswell"
    with pytest.raises(TargetError, match="new name"):
        tvm.target.register_tag("test/machine", {"kind": "llvm"})


def test_current_target_is_the_innermost_scope() -> None:
    assert Target.current() is None
    with Target("llvm") as outer:
        assert Target.current() is outer
        with Target("cuda"):
            assert Target.current().kind.name == "cuda"
        assert Target.current() is outer
    with pytest.raises(TargetError):
        Target.current(allow_none=False)


def test_missing_target_is_also_told_in_the_classic_words() -> None:
    with pytest.raises(TargetError) as info:
        Target.current(allow_none=False)
    first, *_, last = str(info.value).splitlines()
    assert first == "Target context required, got none"
    assert "InternalError: Check failed: (allow_not_defined) is false: Target context" in last


def test_target_from_device() -> None:
    assert Target.from_device("cpu").kind.name == "llvm"
    assert Target.from_device(tvm.cpu(0)).mcpu == tvm.target.codegen.llvm_get_system_cpu()


def test_features_that_a_virtual_machine_hides_are_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(target_node, "host_triple", lambda: "x86_64-unknown-linux-gnu")
    monkeypatch.setattr(target_node, "host_name", lambda: "sapphirerapids")
    monkeypatch.setattr(target_node, "host_feature_set", lambda: frozenset(["avx2", "fma"]))
    mattr = Target.from_device("cpu").mattr
    assert mattr[:2] == ["+avx2", "+fma"] and {"-amx-tile", "-avx512f"} <= set(mattr)


def test_equal_targets_are_one_key() -> None:
    assert {Target("llvm"): 1}[Target("llvm -keys=cpu")] == 1
    assert Target("llvm") != Target("llvm -mcpu=haswell")


def test_canonical_forms() -> None:
    target, host = Target.canon_target_and_host("cuda", "llvm")
    assert target.host == host == Target("llvm")
    assert Target.canon_target(None) is None
    assert [str(t) for t in Target.canon_multi_target(["llvm", "c"])] == [
        "llvm -keys=cpu",
        "c -keys=cpu",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("llmv", "did you mean 'llvm'"),
        ("llvm -mcpuu=x", "did you mean 'mcpu'"),
        ("llvm -num-cores=many", "requires an integer"),
        ("llvm -fast-math=perhaps", "requires true or false"),
        ("llvm -mcpu", "requires a value"),
        ("", "requires a kind"),
        ("-mcpu=x", "requires a kind"),
        ("llvm mcpu=x", "start with '-'"),
        ('{"kind": "llvm"', "valid JSON"),
        ({"mcpu": "x"}, "requires a kind"),
        (3, "requires a text"),
    ],
)
def test_wrong_target_is_rejected(given: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Target(given)


def test_every_kind_has_a_target() -> None:
    for kind in Target.list_kinds():
        assert Target(kind).kind.name == kind
        assert "keys" in Target(kind).kind.options


def test_generic_function_follows_the_target() -> None:
    @tvm.target.generic_func
    def name(x: int) -> str:
        return f"default {x}"

    @name.register(["cuda", "gpu"])
    def _(x: int) -> str:
        return f"gpu {x}"

    @name.register("cpu")
    def _(x: int) -> str:
        return f"cpu {x}"

    assert name(1) == "default 1"
    with Target("cuda"):
        assert name(2) == "gpu 2"
    with Target("llvm"):
        assert name(3) == "cpu 3"


def test_generic_function_rejects_a_second_registration() -> None:
    @tvm.target.override_native_generic_func("test_generic")
    def name() -> str:
        return "default"

    name.register("cpu")(lambda: "cpu")
    with pytest.raises(TargetError, match="already"):
        name.register("cpu")(lambda: "again")
    name.register("cpu", override=True)(lambda: "other")
    with Target("llvm"):
        assert name() == "other"


def test_features_of_a_processor() -> None:
    target = Target("llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod")
    assert target.features.has_dotprod
    assert target.features.is_aarch64
    assert target.features.no_such_thing is None
    server = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1")
    assert server.features.has_sve and server.features.has_matmul_i8 and server.features.has_asimd
    assert not Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72").features.has_dotprod
    assert server.features.has_scalable_vectors
    riscv = "llvm -mtriple=riscv64-linux-gnu"
    assert not Target(riscv).features.has_scalable_vectors
    assert Target(f"{riscv} -mattr=+v").features.has_scalable_vectors


def test_classic_module_of_targets_has_class_and_constructors() -> None:
    module = importlib.import_module("tvm.target.target")
    assert tvm.target.target is module
    assert module.Target is Target and module.arm_cpu("rasp4b").model == "bcm2711"
    names = (
        "adreno bifrost create cuda hexagon intel_graphics mali micro rasp riscv_cpu rocm stm32 vta"
    )
    assert all([callable(getattr(module, name)) for name in names.split()])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-mattr=+avx222", "features of x86_64.*got 'avx222'"),
        ("-mattr=avx2", r"\+ or - before them, got 'avx2'"),
        ("-mabi=lp64", "an ABI of x86_64, got 'lp64'"),
        ("-mtriple=riscv64-linux-gnu -mabi=lp65", "an ABI of riscv64, got 'lp65'"),
        ("-opt-level=4", "-opt-level requires 0 to 3, got 4"),
        ("-jit=other", "-jit requires orcjit or mcjit, got 'other'"),
        ("-cl-opt=nonsense", "-cl-opt requires options like"),
        ("-cl-opt=-unroll-treshold:uint=1", "(?s)an option of LLVM.*'unroll-threshold'"),
    ],
)
def test_option_that_llvm_cannot_follow_is_rejected(options: str, message: str) -> None:
    func = tvm.tir.PrimFunc([], tvm.tir.Evaluate(0), attrs={"global_symbol": "f"})
    triple = "" if "mtriple" in options else "-mtriple=x86_64-linux-gnu "
    with pytest.raises(TargetError, match=message):
        tvm.build(func, target=f"llvm {triple}{options}")


def test_native_processor_takes_additional_features() -> None:
    base = tvm.target.cpu_info(Target("llvm -mcpu=native"))
    less = tvm.target.cpu_info(Target("llvm -mcpu=native -mattr=-sse4.2"))
    assert base.name == less.name and "avx" not in less.features


def test_features_imply_others() -> None:
    features = tvm.target.cpu_info(Target("llvm -mattr=+avx512bw")).features
    assert {"avx512f", "avx2", "fma", "sse4.1"} <= features


def test_options_may_be_numbers_of_scripts() -> None:
    given = {
        "kind": "vulkan",
        "supports_float32": tir.const(True),
        "max_num_threads": tir.const(64),
    }
    attrs = Target(given).attrs
    assert attrs["supports_float32"] is True and attrs["max_num_threads"] == 64


@pytest.mark.parametrize(
    ("text", "dsp", "mve"),
    [
        ("c -mcpu=cortex-m3", False, False),
        ("c -mcpu=cortex-m33", True, False),
        ("llvm -mtriple=thumbv7em-none-eabi -mcpu=cortex-m4", True, False),
        ("c -mcpu=cortex-m4+nodsp", False, False),
        ("c -mcpu=cortex-m55", True, True),
        ("c -mcpu=cortex-m55+nomve", True, False),
        ("llvm -mtriple=thumbv8.1m.main-none-eabi -mcpu=cortex-m55 -mattr=+nomve", True, False),
    ],
)
def test_extensions_of_cortex_m_are_told_by_the_name(text: str, dsp: bool, mve: bool) -> None:
    target = Target(text)
    assert (target.features.has_dsp, target.features.has_mve) == (dsp, mve)
    assert target.keys == ("arm_cpu", "cpu")


def test_arm_processors_have_the_key_of_their_schedules() -> None:
    assert Target("llvm -mtriple=aarch64-linux-gnu").keys == ("arm_cpu", "cpu")
    assert Target("llvm -mtriple=armv7a-linux-gnueabihf -keys=cpu").keys == ("cpu", "arm_cpu")
    assert Target("llvm -mtriple=riscv64-linux-gnu").keys == ("cpu",)
    target = Target("llvm -mtriple=aarch64-linux-gnu")
    assert Target(target.export()) == target


def test_the_kind_for_tests_has_a_feature() -> None:
    assert Target("test").features.is_test
    assert not Target("cuda").features.is_test
    assert not Target("test").features.is_missing


def test_targets_of_records_lack_past_options() -> None:
    assert str(recorded_target("llvm -link-params=0 -mcpu=skylake")) == str(
        Target("llvm -mcpu=skylake")
    )
    assert recorded_target({"kind": "llvm"}).kind.name == "llvm"
    with pytest.raises(TargetError, match="requires a text, dict or Target, got 5"):
        recorded_target(5)

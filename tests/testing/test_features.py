"""What tests need, and what importers note for them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tvm
import tvm.testing
from tests.relay.transform.test_plan_devices import copies
from tvm import relay
from tvm.testing import Feature


def skips(marks: list[pytest.MarkDecorator]) -> list[bool]:
    return [mark.args[0] for mark in marks if mark.name == "skipif"]


def test_a_feature_that_is_missing_skips_a_test() -> None:
    Feature("test_parent", run_time_check=lambda: False)
    child = Feature(
        "test_child",
        "a child",
        compile_time_check=lambda: True,
        run_time_check=lambda: "it has left",
        parent_features="test_parent",
    )
    marks = child.marks()
    assert [m.kwargs["reason"] for m in marks] == ["it has left", "test_parent is not there"]
    assert skips(marks) == [True, True]
    assert skips(child.marks("compile-only")) == [False, False]
    assert skips(child.marks("optional")) == []


def test_features_decorate_tests_in_every_form() -> None:
    def test() -> None: ...

    for decorated in (
        tvm.testing.requires_llvm(test),
        tvm.testing.requires_llvm(support_required="compile-only")(test),
        Feature.require("llvm")(test),
        tvm.testing.uses_gpu(test),
        tvm.testing.slow(test),
        tvm.testing.requires_nvcc_version(11)(test),
        tvm.testing.requires_cuda_compute_version(8)(test),
    ):
        assert decorated is test
    assert skips(test.pytestmark)[:3] == [False] * 3  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="support_required is one of"):
        tvm.testing.requires_llvm(support_required="run")
    with pytest.raises(ValueError, match="no feature is called 'lvm'; did you mean 'llvm'"):
        Feature.require("lvm")


def test_importers_note_spans_unless_told_otherwise() -> None:
    from tvm.relay.frontend.common import set_span

    with tvm.testing.disable_span_filling():
        assert set_span(relay.var("x"), "here").span is None
        with tvm.testing.enable_span_filling():
            assert set_span(relay.var("x"), "here").span.source_name.name == "here"
    assert set_span(relay.var("x"), "here").span is not None


def test_helpers_of_time_and_death() -> None:
    assert tvm.testing.identity_after(3, 0.0) == 3
    code = "import tvm.testing; tvm.testing.terminate_self()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 255


def test_values_fall_back_to_a_kind_of_device() -> None:
    x = relay.var("x", shape=(2,))
    placed = relay.annotation.on_device(relay.exp(x), tvm.cpu())
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.negative(placed)))
    targets = [tvm.target.Target("llvm"), tvm.target.Target("ext_dev", host="llvm")]
    for fallback, expected in ((1, []), (12, [(1, 12)]), (0, [])):
        config = {"relay.fallback_device_type": fallback}
        with tvm.transform.PassContext(config=config) as context:
            plan = tvm.target.make_compilation_config(context, targets)
            assert copies(relay.transform.PlanDevices(plan)(mod)["main"]) == expected
    context = tvm.transform.PassContext(config={"relay.fallback_device_type": 2})
    with pytest.raises(ValueError, match="is 2, the targets are for the device types"):
        tvm.target.make_compilation_config(context, targets)


def test_lowered_functions_are_built_by_the_back_end() -> None:
    from tvm.relay.backend import _backend, te_compiler

    a = tvm.te.placeholder((4,), name="a")
    b = tvm.te.compute((4,), lambda i: a[i] + 1.0)
    mod = tvm.lower(tvm.te.create_schedule(b.op), [a, b], name="plus")
    out = tvm.nd.empty((4,))
    _backend.build(mod, "llvm")["plus"](tvm.nd.array(np.zeros(4, "float32")), out)
    assert (out.numpy() == 1).all()
    op = relay.op.get("exp")
    call = (op, None, [a], relay.TensorType((4,), "float32"), "llvm")
    for flag in (True, False):
        found, _ = te_compiler.select_implementation(*call, use_autotvm=flag)
        assert found.name.startswith("exp")


@pytest.mark.parametrize("feature", Feature._all.values(), ids=lambda feature: str(feature.name))
def test_features_are_there_or_say_why_not(feature: Feature) -> None:
    for mark in feature.marks():
        (is_skipped,), reason = mark.args, mark.kwargs["reason"]
        assert isinstance(is_skipped, bool)
        assert reason


def test_no_gpu_library_is_there_without_a_gpu() -> None:
    if not tvm.cuda().exist:
        assert any([mark.args[0] for mark in tvm.testing.requires_cublas.marks()])

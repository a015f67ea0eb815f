from __future__ import annotations

from dataclasses import dataclass

import pytest

import tvm.ir.instrument as instrument
from tvm import knobs, tir
from tvm.error import TVMError
from tvm.ir import IRModule
from tvm.ir.pass_context import known_passes
from tvm.ir.transform import (
    ApplyPassToFunction,
    PassContext,
    Sequential,
    module_pass,
    register_pass_config,
)


def _module() -> IRModule:
    body = tir.Evaluate(0)
    return IRModule({"f": tir.PrimFunc([], body), "g": tir.PrimFunc([], body)})


@module_pass(opt_level=1, name="test.AddMark")
def add_mark(mod: IRModule, ctx: PassContext) -> IRModule:
    return mod.with_attr("marks", (mod.get_attr("marks") or 0) + 1)


@module_pass(opt_level=3, name="test.AddMarkLate")
def add_mark_late(mod: IRModule, ctx: PassContext) -> IRModule:
    return mod.with_attr("marks", (mod.get_attr("marks") or 0) + 10)


@dataclass(frozen=True)
class MarkOptions:
    times: int = 1
    loud: bool = False


register_pass_config("test.Mark", MarkOptions)
register_pass_config("test.flag", bool)


def test_levels_decide_which_passes_run() -> None:
    both = Sequential([add_mark, add_mark_late])
    assert both(_module()).attrs["marks"] == 1
    with PassContext(opt_level=3):
        assert both(_module()).attrs["marks"] == 11
    with PassContext(opt_level=0):
        assert both(_module()).get_attr("marks") is None


def test_passes_can_be_required_and_disabled_by_name() -> None:
    both = Sequential([add_mark, add_mark_late])
    with PassContext(opt_level=3, disabled_pass=["test.AddMark"]):
        assert both(_module()).attrs["marks"] == 10
    with PassContext(opt_level=0, required_pass=["test.AddMarkLate"]):
        assert both(_module()).attrs["marks"] == 10


def test_contexts_nest() -> None:
    with PassContext(opt_level=1):
        with PassContext(opt_level=3):
            assert PassContext.current().opt_level == 3
        assert PassContext.current().opt_level == 1


def test_class_passes_keep_their_arguments() -> None:
    @module_pass(opt_level=1)
    class Adder:
        def __init__(self, amount: int) -> None:
            self.amount = amount

        def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
            return mod.with_attr("sum", self.amount)

    made = Adder(7)
    assert made.info.name == "Adder"
    assert made(_module()).attrs["sum"] == 7
    assert made.amount == 7
    with pytest.raises(AttributeError, match="ammount"):
        made.ammount


def test_unknown_config_key_is_rejected_with_a_suggestion() -> None:
    with pytest.raises(TVMError, match=r"(?s)known config key, got 'test.Mrak'.*'test.Mark'"):
        PassContext(config={"test.Mrak": {}})


def test_unknown_passes_are_rejected_with_a_suggestion() -> None:
    with pytest.raises(TVMError, match=r"(?s)got 'FoldConstnat'.*'FoldConstant'"):
        PassContext(disabled_pass=["FoldConstnat"])
    with pytest.raises(TVMError, match="required_pass"):
        PassContext(required_pass=["test.NoSuchPass"])
    PassContext(disabled_pass=["tir.CommonSubexprElimTIR", "test.AddMark"])


def test_unknown_option_is_rejected_with_a_suggestion() -> None:
    with pytest.raises(TVMError, match=r"(?s)has the options.*got 'tmes'.*'times'"):
        PassContext(config={"test.Mark": {"tmes": 1}})


def test_wrong_config_types_are_rejected() -> None:
    with pytest.raises(TypeError, match="requires bool"):
        PassContext(config={"test.flag": "yes"})
    with pytest.raises(TypeError, match="requires int"):
        PassContext(config={"test.Mark": {"times": "many"}})


def test_options_are_records() -> None:
    with PassContext(config={"test.Mark": {"times": 3}}) as context:
        assert context.options("test.Mark", MarkOptions) == MarkOptions(times=3)
    assert PassContext.current().options("test.Mark", MarkOptions) == MarkOptions()


def test_instruments_see_passes_and_can_skip_them() -> None:
    seen = []

    @instrument.pass_instrument
    class Watch:
        def run_before_pass(self, mod: IRModule, info: object) -> None:
            seen.append(f"before {info.name}")

        def run_after_pass(self, mod: IRModule, info: object) -> None:
            seen.append(f"after {info.name}")

        def should_run(self, mod: IRModule, info: object) -> bool:
            return info.name != "test.AddMarkLate"

    with PassContext(opt_level=3, instruments=[Watch()]):
        result = Sequential([add_mark, add_mark_late], name="both")(_module())
    assert seen == ["before both", "before test.AddMark", "after test.AddMark", "after both"]
    assert result.attrs["marks"] == 1


def test_timing_names_each_pass() -> None:
    timing = instrument.PassTimingInstrument()
    with PassContext(instruments=[timing]):
        Sequential([add_mark])(_module())
        text = timing.render()
    assert "test.AddMark" in text and "us" in text
    assert timing.render() == ""


def test_instruments_that_fail_to_enter_are_forgotten() -> None:
    class Broken(instrument.PassInstrument):
        def enter_pass_ctx(self) -> None:
            raise RuntimeError("broken")

    context = PassContext.current()
    with pytest.raises(RuntimeError, match="broken"):
        context.override_instruments([Broken()])
    assert not context.instruments


def test_dump_writes_changed_programs_only(tmp_path) -> None:
    @module_pass(opt_level=0, name="test.Drop")
    def drop(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule({"f": mod["f"]})

    @module_pass(opt_level=0, name="test.Keep")
    def keep(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod

    with PassContext(instruments=[instrument.DumpIR(tmp_path)]):
        drop(keep(_module()))
    assert [path.name for path in tmp_path.iterdir()] == ["02_test.Drop.txt"]


def test_apply_to_matching_functions() -> None:
    @module_pass(opt_level=0, name="test.Tag")
    def tag(mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.map_functions(lambda _, f: f.with_attr("tag", 1))

    result = ApplyPassToFunction(tag, "f.*")(_module())
    assert result["f"].attrs.get("tag") == 1 and result["g"].attrs.get("tag") is None
    with pytest.raises(TVMError, match="matches"):
        ApplyPassToFunction(tag, "zzz", True)(_module())


def test_a_pass_rejects_what_is_no_module() -> None:
    with pytest.raises(TypeError, match="requires an IRModule"):
        add_mark(3)


def test_errors_name_the_pass() -> None:
    @module_pass(opt_level=0, name="test.Fail")
    def fail(mod: IRModule, ctx: PassContext) -> IRModule:
        raise TVMError("nothing works", hint="try again")

    with pytest.raises(TVMError) as info:
        fail(_module())
    assert str(info.value).splitlines() == [
        "nothing works", "  in pass test.Fail", "  hint: try again"
    ]  # fmt: skip


def test_knobs_time_dump_and_stop(tmp_path, capsys) -> None:
    @module_pass(opt_level=0, name="test.Last")
    def last(mod: IRModule, ctx: PassContext) -> IRModule:
        return IRModule({"f": mod["f"]})

    with knobs.TIME_PASSES.scope(True):
        Sequential([add_mark], name="timed")(_module())
    assert "timed" in capsys.readouterr().out
    stopping = knobs.STOP_AFTER.scope("test.Last")
    with knobs.DUMP_IR.scope(tmp_path), stopping, pytest.raises(TVMError, match="stops after"):
        Sequential([last, add_mark])(_module())
    assert [path.name for path in tmp_path.iterdir()] == ["01_test.Last.txt"]


def test_options_without_effect_are_rejected_unless_default() -> None:
    option = "no_unroll_loop_with_extent_one"
    PassContext(config={"tir.LoopPartition": {option: False}})
    with pytest.raises(TVMError, match=rf"(?s){option} of tir.LoopPartition.*hint"):
        PassContext(config={"tir.LoopPartition": {option: True}})


def test_declared_passes_have_names_before_they_are_made() -> None:
    known = known_passes()
    assert {"tir.Simplify", "tir.SplitHostDevice", "tir.Filter", "tir.ThreadSync"} <= known
    assert "tir.Simplified" not in known

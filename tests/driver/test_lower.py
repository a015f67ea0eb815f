from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm._ffi import remove_global_func
from tvm.error import TVMError
from tvm.ir import IRModule
from tvm.ir.instrument import PassTimingInstrument, PrintAfterAll, PrintBeforeAll, pass_instrument
from tvm.ir.transform import PassContext
from tvm.target import Target


def scaled(factor: float, name: str = "scaled") -> IRModule:
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] * factor, name="b")
    return tvm.lower(te.create_schedule(b.op), [a, b], name=name)


def run(f: Any) -> list[float]:
    out = tvm.nd.empty((8,))
    f(tvm.nd.array(np.ones(8, "float32")), out)
    return out.numpy().tolist()


def test_several_modules_are_built_as_one() -> None:
    lib = tvm.build([scaled(2, "twice"), scaled(3, "thrice")], target="llvm")
    assert (run(lib["twice"])[0], run(lib["thrice"])[0]) == (2, 3)
    with pytest.raises(ValueError, match="got two of 'twice'"):
        tvm.build([scaled(2, "twice"), scaled(3, "twice")], target="llvm")


def test_modules_by_target_are_one_library() -> None:
    lib = tvm.build({"llvm": [scaled(2, "twice")], Target("c"): scaled(3, "thrice")})
    assert run(lib["twice"])[0] == 2
    assert lib.imported_modules[0].type_key == "c"


def test_a_device_gets_its_kernels_and_the_host_the_rest() -> None:
    given: list[tuple[IRModule, Target]] = []

    @tvm.register_func("target.build.ext_dev", override=True)
    def generate(mod: IRModule, target: Target) -> tvm.runtime.Module:
        given.append((mod, target))
        return tvm.build(scaled(5, "other"), target="llvm")

    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    try:
        lib = tvm.build(s, [a, b], target="ext_dev", target_host="llvm", name="plus")
    finally:
        remove_global_func("target.build.ext_dev")
    ((kernels, target),) = given
    assert [g.name_hint for g in kernels.functions] == [
        "plus_kernel"
    ] and target.kind.name == "ext_dev"
    assert lib.type_key == "llvm" and "plus_kernel" in lib.get_source()
    assert len(lib.imported_modules) == 1


def test_users_passes_run_at_their_phases() -> None:
    seen = []

    def told(phase: int) -> Any:
        @tvm.tir.transform.prim_func_pass(opt_level=0, name=f"tell_{phase}")
        def tell(func: tir.PrimFunc, mod: IRModule, ctx: PassContext) -> tir.PrimFunc:
            kinds = [type(node).__name__ for node in nodes_of(func.body)]
            seen.append(
                (phase, "ProducerStore" in kinds or "BufferRealize" in kinds, "Ramp" in kinds)
            )
            return func

        return tell

    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] * 2.0, name="b")
    c = te.compute((8,), lambda i: b[i] + 1.0, name="c")
    s = te.create_schedule(c.op)
    s[c].vectorize(c.op.axis[0])
    with PassContext(
        config={"tir.add_lower_pass": [(phase, told(phase)) for phase in (3, 1, 0, 2)]}
    ):
        tvm.lower(s, [a, c])
    assert seen == [(0, True, False), (1, False, False), (2, False, True), (3, False, True)]


def nodes_of(stmt: Any) -> list[Any]:
    found: list[Any] = []
    tir.stmt_functor.post_order_visit(stmt, found.append)
    return found


def test_simple_mode_leaves_loops_whole() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="b")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], 4)

    def loops(mod: IRModule) -> int:
        return sum([isinstance(node, tir.For) for node in nodes_of(mod["main"].body)])

    assert loops(tvm.lower(s, [a, b], simple_mode=True)) == 2
    assert loops(tvm.lower(s, [a, b])) > 2


def test_loops_of_one_iteration_are_kept_when_told_to() -> None:
    a = te.placeholder((1, 8), name="a")
    b = te.compute((1, 8), lambda i, j: a[i, j] * 2.0, name="b")
    s = te.create_schedule(b.op)
    assert "grid" not in str(tvm.lower(s, [a, b]))
    with PassContext(config={"tir.debug_keep_trivial_loop": True}):
        text = str(tvm.lower(s, [a, b]))
    assert "grid(1, 8)" in text


def test_vtcm_beyond_the_configured_capacity_is_rejected() -> None:
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="b")
    c = te.compute((64,), lambda i: b[63 - i], name="c")
    s = te.create_schedule(c.op)
    s[b].set_scope("global.vtcm")
    limit = PassContext(config={"tir.vtcm_capacity": 128})
    with limit, pytest.raises(TVMError, match="need 256 bytes, there are 128"):
        tvm.lower(s, [a, c])


def test_options_of_absent_back_ends_take_only_what_changes_nothing() -> None:
    with pytest.raises(TVMError, match="config key tir.detect_global_barrier cannot be True"):
        PassContext(config={"tir.detect_global_barrier": True})
    assert PassContext(config={"tir.detect_global_barrier": False}).config


def test_every_classic_option_of_this_level_is_known() -> None:
    keys = """HoistExpression HoistIfThenElse InjectDoubleBuffer LoopPartition RemoveNoOp Simplify UnrollLoop
        add_lower_pass debug_keep_trivial_loop detect_global_barrier disable_assert disable_cse_tir
        disable_storage_rewrite disable_vectorize enable_buffer_level_predication enable_debug
        enable_equiv_terms_in_cse_tir experimental_dma_bypass_cache instr_siblings instrument_bound_checkers
        instrument_lwp is_entry_func lwp_disable_func_prof lwp_max_depth lwp_min_height merge_static_smem
        noalias ptx_ldg32 reset_start_id use_async_copy vtcm_capacity"""
    known = PassContext.list_configs()
    assert [key for key in keys.split() if f"tir.{key}" not in known] == []


def test_accesses_out_of_bounds_fail_while_running() -> None:
    a = te.placeholder((8,), name="a")
    n = te.var("n")
    b = te.compute((8,), lambda i: a[i + n], name="b")
    s = te.create_schedule(b.op)
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        f = tvm.build(s, [a, b, n], "llvm")
    out = tvm.nd.empty((8,))
    f(tvm.nd.array(np.ones(8, "float32")), out, 0)
    with pytest.raises(IndexError, match="buffer a needs an index from 0 to below 8, got 8"):
        f(tvm.nd.array(np.ones(8, "float32")), out, 3)


def test_instruments_see_the_passes(capsys: pytest.CaptureFixture[str]) -> None:
    timing = PassTimingInstrument()
    names = []

    @pass_instrument
    class Names:
        def run_before_pass(self, mod: IRModule, info: Any) -> None:
            names.append(info.name)

    with PassContext(instruments=[timing, Names()]):
        scaled(2)
        profile = timing.render()
    assert "tir.StorageFlatten" in names and "tir.StorageFlatten: " in profile and "us" in profile
    with PassContext(instruments=[PrintBeforeAll(), PrintAfterAll()]):
        scaled(2)
    shown = capsys.readouterr().out
    told = "Running Pass: The meta data of the pass - pass name: tir.Simplify, opt_level: 0, "
    assert f"Before {told}" in shown and f"After {told}" in shown


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: IRModule(3),
            TypeError,
            "IRModule requires a dictionary of functions by name, got int",
        ),
        (lambda: PassContext(config=3), TypeError, "requires a dictionary for config, got 3"),
        (lambda: tvm.ir.load_json("{}"), TVMError, "an object without root, nodes, arrays"),
        (lambda: tvm.ir.load_json("[]"), TVMError, "list without root, nodes, arrays"),
        (lambda: PassContext(num_evals=3), TVMError, "only the default of num_evals, got 3"),
        (lambda: tvm.build([]), ValueError, "IRModule is required, got list"),
    ],
)
def test_wrong_values_are_named(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()

"""RewriteCUDAGraph: what is recorded, what it takes and gives, and which storages functions share."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

STORAGE, RECORD = (f"vm.builtin.cuda_graph.{n}" for n in ("get_cached_alloc", "run_or_capture"))


def rewritten(mod: tvm.IRModule, enabled: bool = True) -> tvm.IRModule:
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": enabled}):
        after = relax.transform.RewriteCUDAGraph()(mod)
    assert relax.analysis.well_formed(after)
    return after


def calls(func: relax.Function) -> list[str]:
    found = [b.value for b in func.body.blocks[0].bindings if isinstance(b.value, relax.Call)]
    return [str(getattr(c.args[0] if "with_ctx" in str(c.op) else c.op, "global_symbol", c.op)) for c in found]  # fmt: skip


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        R.func_attr({"relax.force_pure": True})
        s = R.memory.alloc_storage(R.shape([32]), 0, "global", "uint8")
        a = R.memory.alloc_tensor(s, 0, R.shape([8]), "float32")
        _ = R.call_packed("first", x, a, sinfo_args=R.Tuple)
        t = R.memory.alloc_storage(R.shape([64]), 0, "global", "uint8")
        b = R.memory.alloc_tensor(t, 0, R.shape([8]), "float32")
        _1 = R.call_packed("second", a, b, sinfo_args=R.Tuple)
        c = R.memory.alloc_tensor(s, 0, R.shape([8]), "float32")
        _2 = R.call_packed("third", b, c, sinfo_args=R.Tuple)
        d = R.builtin.alloc_tensor(R.shape([8]), "float32", 0)
        _3 = R.call_packed("last", c, d, sinfo_args=R.Tuple)
        return d


def test_launches_between_input_and_output_are_recorded() -> None:
    after = rewritten(Chain)
    recorded = after["main_cuda_graph_capture"]
    assert calls(recorded) == ["second", "relax.memory.alloc_tensor", "third"]
    assert [p.name_hint for p in recorded.params] == ["a", "b", "s"]
    kept = [name for name in calls(after["main"]) if not name.startswith("relax.")]
    assert kept == [STORAGE, "first", RECORD, "last"]
    # one result: what the last call reads
    assert_structural_equal(
        recorded.ret_struct_info, relax.TupleStructInfo([relax.TensorStructInfo((8,), "float32")])
    )
    # the largest storage first
    sizes = [int(b.value.args[0].values[0]) for b in after["cuda_graph_alloc"].body.blocks[0].bindings[:2]]  # fmt: skip
    assert sizes == [64, 32]
    items = {b.var.name_hint: b.value.index for b in after["main"].body.blocks[0].bindings
             if isinstance(b.value, relax.TupleGetItem)}  # fmt: skip
    assert items["s"] == 1 and items["t"] == 0 and items["c"] == 0


def test_nothing_changes_unless_it_is_asked_for() -> None:
    assert_structural_equal(rewritten(Chain, enabled=False), Chain)


def test_storages_of_results_stay_those_of_the_run() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main() -> R.Tensor((8,), "float32"):
            R.func_attr({"relax.force_pure": True})
            s = R.memory.alloc_storage(R.shape([32]), 0, "global", "uint8")
            a = R.memory.alloc_tensor(s, 0, R.shape([8]), "float32")
            _ = R.call_packed("fill", a, sinfo_args=R.Tuple)
            pair = (a, a)
            return pair[1]

    assert_structural_equal(rewritten(Before), Before)


def test_functions_share_storages() -> None:
    @I.ir_module
    class Before:
        @R.function
        def small():
            R.func_attr({"relax.force_pure": True})
            s = R.memory.alloc_storage(R.shape([32]), 0, "global", "uint8")
            a = R.memory.alloc_tensor(s, 0, R.shape([8]), "float32")
            _ = R.call_packed("f", a, sinfo_args=R.Tuple)
            return R.tuple()

        @R.function
        def tall():
            R.func_attr({"relax.force_pure": True})
            s = R.memory.alloc_storage(R.shape([320]), 0, "global", "uint8")
            a = R.memory.alloc_tensor(s, 0, R.shape([80]), "float32")
            _ = R.call_packed("f", a, sinfo_args=R.Tuple)
            return R.tuple()

    after = rewritten(Before)
    (storage, _) = after["cuda_graph_alloc"].body.blocks[0].bindings
    assert int(storage.value.args[0].values[0]) == 320
    numbers = []
    for name in ("small", "tall"):
        launch = [b.value for b in after[name].body.blocks[0].bindings
                  if isinstance(b.value, relax.Call)][-1]  # fmt: skip
        numbers.append(int(launch.args[1].fields[2].value))
    assert numbers == [0, 1], "each recording has a number of its own"


def test_weights_and_named_symbols_are_static() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), w: R.Tensor((8,), "float32")):
            n = T.int64()
            R.func_attr({"relax.force_pure": True, "num_input": 1,
                         "relax.rewrite_cuda_graph.capture_symbolic_vars": ["n"]})  # fmt: skip
            s = R.memory.alloc_storage(R.shape([32]), 0, "global", "uint8")
            a = R.memory.alloc_tensor(s, 0, R.shape([n]), "float32")
            _ = R.call_packed("f", w, a, sinfo_args=R.Tuple)
            return R.tuple()

    after = rewritten(Before)
    recorded = after["main_cuda_graph_capture"]
    assert [p.name_hint for p in recorded.params] == ["w", "a", "shape_expr"]
    launch = [b.value for b in after["main"].body.blocks[0].bindings
              if isinstance(b.value, relax.Call)][-1]  # fmt: skip
    # the number of the recording, and the extents that it is for
    assert len(launch.args[1].fields) == 4


def test_uses_of_void_variables_are_empty_tuples() -> None:
    void = relax.Var("void", R.Tuple([]))
    binding = relax.VarBinding(void, R.assert_op(R.const(True, "bool")))
    seq = relax.SeqExpr([relax.BindingBlock([binding])], void)
    before = relax.Function([], seq, ret_struct_info=R.Tuple([]), is_pure=False)
    after = relax.transform.Normalize()(tvm.IRModule({"main": before}))["main"]
    assert isinstance(after.body.body, relax.Tuple)

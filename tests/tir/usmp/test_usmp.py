"""Static memory planning of loop-level programs: lifetimes, places, addresses."""

from __future__ import annotations

import random

import pytest

import tvm
from tvm.error import TVMError
from tvm.ir.memory_pools import PoolInfoProperties, WorkspacePoolInfo
from tvm.script import tir as T
from tvm.target import Target
from tvm.tir.usmp.algorithms import ALGORITHMS, pool_sizes, total_size
from tvm.tir.usmp.analysis import BufferInfoAnalysis, extract_buffer_info
from tvm.tir.usmp.transform import (
    assign_pools,
    assign_statement_places,
    convert_pool_allocations_to_offsets,
)
from tvm.tir.usmp.utils import CANDIDATE_MEMORY_POOL_ATTR, BufferInfo

POOL = WorkspacePoolInfo("sram", [Target("c")])


@T.prim_func
def first(x: T.handle, y: T.handle) -> None:
    T.func_attr({"global_symbol": "first"})
    X = T.match_buffer(x, (64,), "float32")
    Y = T.match_buffer(y, (64,), "float32")
    scratch = T.allocate([128], "float32", "global")
    S = T.decl_buffer((128,), data=scratch)
    for i in range(64):
        S[i] = X[i]
    for i in range(64):
        Y[i] = S[i]


@T.prim_func
def run_model(x: T.handle, y: T.handle) -> None:
    T.func_attr({"global_symbol": "run_model"})
    X = T.match_buffer(x, (64,), "float32")
    Y = T.match_buffer(y, (64,), "float32")
    a = T.allocate([256], "uint8", "global")
    b = T.allocate([256], "uint8", "global")
    c = T.allocate([256], "uint8", "global")
    T.evaluate(T.call_extern("int32", "first", X.data, a))
    T.evaluate(T.call_extern("int32", "first", a, b))
    T.evaluate(T.call_extern("int32", "first", b, c))
    T.evaluate(T.call_extern("int32", "first", c, Y.data))


@T.prim_func
def looped(x: T.handle) -> None:
    X = T.match_buffer(x, (4,), "int8")
    a = T.allocate([16], "int8", "global")
    b = T.allocate([16], "int8", "global")
    c = T.allocate([16], "int8", "global")
    A = T.decl_buffer((16,), "int8", data=a)
    B = T.decl_buffer((16,), "int8", data=b)
    C = T.decl_buffer((16,), "int8", data=c)
    for i in range(4):
        A[i] = X[i]
        B[i] = A[i]
        X[i] = B[i]
    C[0] = X[0]


def planned(*functions: tvm.tir.PrimFunc) -> tuple[tvm.IRModule, BufferInfoAnalysis]:
    """The module with pools assigned; the last function is the main one."""
    named = {str(f.attrs.get("global_symbol", "main")): f for f in functions}
    mod = tvm.IRModule({n: assign_pools(f, [POOL], []) for n, f in named.items()})
    main = list(named)[-1]
    return mod, extract_buffer_info(mod[main], mod, keep_arguments=True)


def conflicts(analysis: BufferInfoAnalysis) -> dict[str, set[str]]:
    return {
        info.name_hint: {other.name_hint for other in info.conflicts}
        for info in analysis.buffer_info_stmts
    }


def test_buffers_of_called_functions_meet_those_of_the_caller() -> None:
    _, analysis = planned(first, run_model)
    assert conflicts(analysis) == {
        "a": {"b", "scratch"},
        "b": {"a", "c", "scratch"},
        "c": {"b", "scratch"},
        "scratch": {"a", "b", "c"},
    }
    assert analysis.memory_pressure == 256 + 256 + 512


def test_arguments_are_in_use_while_the_callee_mentions_them() -> None:
    mod, _ = planned(first, run_model)
    analysis = extract_buffer_info(mod["run_model"], mod)
    kept = extract_buffer_info(mod["run_model"], mod, keep_arguments=True)
    found, all_of_it = conflicts(analysis), conflicts(kept)
    assert all(found[name] <= all_of_it[name] for name in found) and found != all_of_it
    assert all(info.size_bytes.value == info.size for info in analysis.buffer_info_stmts)


def test_allocations_right_inside_parallel_loops_are_left_out() -> None:
    @T.prim_func
    def shared(X: T.Buffer((8,), "int8")):
        for i in T.parallel(8):
            a = T.allocate([16], "int8", "global")
            A = T.decl_buffer((16,), "int8", data=a)
            A[i] = X[i]

    allocation = shared.body.body.replace(annotations={CANDIDATE_MEMORY_POOL_ATTR: [POOL]})
    func = shared.with_body(shared.body.replace(body=allocation))
    assert not extract_buffer_info(func, tvm.IRModule({"main": func})).buffer_info_stmts


def test_buffer_in_a_loop_is_in_use_during_all_of_it() -> None:
    _, analysis = planned(looped)
    assert conflicts(analysis) == {"a": {"b"}, "b": {"a"}, "c": set()}
    assert analysis.memory_pressure == 32


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_conflicting_buffers_never_overlap(algorithm: str) -> None:
    rng = random.Random(3)
    for _ in range(10):
        buffers = [BufferInfo(f"b{i}", rng.randint(1, 5000), [POOL]) for i in range(24)]
        pairs = [(a, b) for a in buffers for b in buffers if a is not b and rng.random() < 0.15]
        for buffer in buffers:
            mine = [b for a, b in pairs if a is buffer] + [a for a, b in pairs if b is buffer]
            buffer.set_conflicts(list(dict.fromkeys(mine)))
        places = tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(buffers, 0)
        for buffer in buffers:
            start = places[buffer].byte_offset
            assert start % buffer.alignment == 0
            for other in buffer.conflicts:
                begin = places[other].byte_offset
                assert start + buffer.size_bytes <= begin or begin + other.size_bytes <= start


def test_search_saves_memory_where_the_greedy_order_does_not() -> None:
    rng = random.Random(7)
    spans = [sorted((rng.randint(0, 30), rng.randint(0, 30))) for _ in range(30)]
    buffers = [BufferInfo(f"b{i}", 64 * rng.randint(1, 40), [POOL]) for i in range(len(spans))]
    for i, (start, end) in enumerate(spans):
        others = [
            buffers[j] for j, (s, e) in enumerate(spans) if j != i and s <= end and start <= e
        ]
        buffers[i].set_conflicts(others)
    sizes = {name: total_size(find(buffers, 0)) for name, find in ALGORITHMS.items()}
    assert sizes["hill_climb"] <= sizes["greedy_by_size"]
    assert sizes["hill_climb"] < sum(b.size_bytes for b in buffers)


def test_second_pool_takes_what_the_first_has_no_room_for() -> None:
    small = WorkspacePoolInfo("small", [Target("c")], PoolInfoProperties(size_hint_bytes=100))
    buffers = [BufferInfo(n, 80, [small, POOL]) for n in "ab"]
    for buffer, other in ((0, 1), (1, 0)):
        buffers[buffer].set_conflicts([buffers[other]])
    places = ALGORITHMS["greedy_by_size"](buffers, 160)
    assert pool_sizes(places) == {small: 80, POOL: 80}
    full = [BufferInfo("c", 101, [small])]
    with pytest.raises(TVMError, match=r"no room for c of 101 bytes in the pools small"):
        ALGORITHMS["greedy_by_size"](full, 101)


def test_allocations_become_addresses_in_parameters() -> None:
    mod, analysis = planned(first, run_model)
    places = ALGORITHMS["greedy_by_size"](
        list(analysis.buffer_info_stmts), analysis.memory_pressure
    )
    by_statement = assign_statement_places(analysis.buffer_info_stmts, places)
    after = convert_pool_allocations_to_offsets(by_statement)(mod)
    main, callee = after["run_model"], after["first"]
    assert [str(b.name) for b in main.buffer_map.values()] == ["X", "Y", "sram"]
    assert [p.name for p in callee.params] == ["x", "y", "sram_0_var"]
    text = main.script()
    assert "T.allocate(" not in text + callee.script()
    assert text.count("sram.data)") == 4  # each call passes the pool on
    (allocated,) = main.attrs["pool_args"]
    assert allocated.allocated_size == 1024 and allocated.pool_var_idx == 2
    printable = convert_pool_allocations_to_offsets(by_statement, emit_tvmscript_printable=True)
    assert "pool_args" not in printable(mod)["run_model"].attrs


def test_every_function_takes_every_pool_behind_its_tensors() -> None:
    pools = [WorkspacePoolInfo(name, [Target("c")]) for name in ("slow", "fast")]
    func = assign_pools(first, pools[:1], [])
    main = assign_pools(run_model, pools[1:], [])
    main = main.replace(buffer_map={main.params[0]: main.buffer_map[main.params[0]]})
    mod = tvm.IRModule({"first": func, "run_model": main, "other": looped})
    analysis = extract_buffer_info(main, mod)
    by_statement = assign_statement_places(
        analysis.buffer_info_stmts,
        ALGORITHMS["greedy_by_size"](list(analysis.buffer_info_stmts), analysis.memory_pressure),
    )
    after = convert_pool_allocations_to_offsets(by_statement)(mod)
    names = [p.name for p in after["first"].params]
    assert names == ["x", "y", "fast_0_var", "slow_1_var"]
    # a last parameter without a buffer is a device's handle
    assert [p.name for p in after["run_model"].params] == ["x", "fast_0_var", "slow_1_var", "y"]
    assert [p.pool_var_idx for p in after["run_model"].attrs["pool_args"]] == [1, 2]
    assert after["other"].same_as(looped)
    text = after["run_model"].script()
    assert "Y, fast.data, slow.data)" in text


def test_greedy_orders_place_behind_all_that_is_met() -> None:
    a, b, c, d = [
        BufferInfo(n, s, [POOL], 16) for n, s in zip("abcd", (90, 60, 50, 40), strict=True)
    ]
    for one, others in ((a, [b, c]), (b, [a, c, d]), (c, [a, b]), (d, [b])):
        one.set_conflicts(others)
    find = tvm.get_global_func("tir.usmp.algo.greedy_by_size")
    assert [find([a, b, c, d], 0)[x].offset for x in (a, b, c, d)] == [0, 96, 160, 160]
    # a build takes the first gap
    assert [ALGORITHMS["greedy_by_size"]([a, b, c, d], 0)[x].offset for x in (a, b, c, d)] == [
        0, 96, 160, 0,
    ]  # fmt: skip
    find = tvm.get_global_func("tir.usmp.algo.greedy_by_conflicts")
    assert [find([a, b, c, d], 0)[x].offset for x in (b, a, c, d)] == [0, 64, 160, 64]


def test_equal_buffers_are_placed_from_the_last_name_on() -> None:
    buffers = [BufferInfo(name, 10, [POOL]) for name in "abc"]
    for buffer in buffers:
        buffer.set_conflicts([other for other in buffers if other is not buffer])
    for algorithm in ("greedy_by_size", "greedy_by_conflicts"):
        places = tvm.get_global_func(f"tir.usmp.algo.{algorithm}")(buffers, 30)
        assert [places[buffer].offset for buffer in buffers] == [20, 10, 0]


def test_main_function_allocates_its_inputs_and_outputs() -> None:
    @T.prim_func
    def run_model(input0: T.handle, weight: T.handle, output: T.handle) -> None:
        X = T.match_buffer(input0, (4,), "int8")
        W = T.match_buffer(weight, (4,), "int8")
        Y = T.match_buffer(output, (4,), "int8")
        for i in range(4):
            Y[i] = X[i] + W[i]

    create = tvm.get_global_func("tir.usmp.transform.CreateAllocatesForIO")
    main = create()(tvm.IRModule({"run_model": run_model}))["run_model"]
    assert [p.name for p in main.params] == ["weight"]
    outer, inner = main.body, main.body.body
    assert dict(outer.annotations) == {"output_tensor": "output"}
    assert dict(inner.annotations) == {"input_tensor": "input0"}

    named = run_model.with_attr("input_vars", [run_model.params[1]])
    main = create()(tvm.IRModule({"run_model": named}))["run_model"]
    assert [p.name for p in main.params] == ["input0", "output"]


def test_buffers_of_parallel_iterations_stay() -> None:
    @T.prim_func
    def func(x: T.handle) -> None:
        X = T.match_buffer(x, (4,), "int8")
        for i in T.parallel(4):
            a = T.allocate([16], "int8", "global")
            A = T.decl_buffer((16,), "int8", data=a)
            A[0] = X[i]
            X[i] = A[0]

    assert assign_pools(func, [POOL], []) is func


def test_small_buffers_stay_where_that_is_asked_for() -> None:
    assert assign_pools(looped, [POOL], [], min_bytes=17) is looped
    with pytest.raises(ValueError, match="needs a main function"):
        convert_pool_allocations_to_offsets({})(tvm.IRModule({"f": looped}))

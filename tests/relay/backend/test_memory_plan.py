"""Storage planning: no two living tensors share storage."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import relay
from tvm.relay.backend.graph import NOP, Graph, GraphNode, TensorInfo, TensorRef
from tvm.relay.backend.memory_plan import ALIGNMENT, plan_memory
from tvm.support import dtype


def info(*shape: int, kind: str = "float32") -> TensorInfo:
    return TensorInfo(shape, dtype(kind))


def chain(length: int, shape: tuple[int, ...] = (4, 4)) -> Graph:
    graph = Graph()
    graph.add(GraphNode("x", [info(*shape)]))
    for i in range(length):
        graph.add(GraphNode(f"k{i}", [info(*shape)], f"k{i}", [TensorRef(i)]))
    graph.heads = [TensorRef(length)]
    return graph


def test_chain_needs_two_storages_beside_the_input() -> None:
    plan = plan_memory(chain(20))
    assert len(plan.sizes) == 3
    assert plan.total_bytes == 3 * 64


def test_inputs_are_never_reused() -> None:
    graph = chain(5)
    plan = plan_memory(graph)
    first = plan.storage_ids[TensorRef(0)]
    assert [ref for ref, s in plan.storage_ids.items() if s == first] == [TensorRef(0)]


def test_kernel_never_writes_over_its_inputs() -> None:
    graph = chain(10)
    plan = plan_memory(graph)
    for i, node in enumerate(graph.nodes[1:], start=1):
        for ref in node.inputs:
            assert plan.storage_ids[ref] != plan.storage_ids[TensorRef(i)]


def test_reshape_shares_the_storage_of_its_input() -> None:
    graph = Graph()
    graph.add(GraphNode("x", [info(4, 4)]))
    graph.add(GraphNode("k", [info(4, 4)], "k", [TensorRef(0)]))
    graph.add(GraphNode("r", [info(16)], NOP, [TensorRef(1)]))
    graph.add(GraphNode("l", [info(16)], "l", [TensorRef(2)]))
    graph.heads = [TensorRef(3)]
    plan = plan_memory(graph)
    assert plan.storage_ids[TensorRef(1)] == plan.storage_ids[TensorRef(2)]
    assert plan.storage_ids[TensorRef(3)] != plan.storage_ids[TensorRef(2)]


def test_sizes_are_aligned_and_large_enough() -> None:
    graph = chain(3, (3, 7))
    plan = plan_memory(graph)
    for ref in graph.entries():
        size = plan.sizes[plan.storage_ids[ref]]
        assert size % ALIGNMENT == 0
        assert size >= graph.info(ref).nbytes


def test_empty_tensors_have_storage() -> None:
    assert plan_memory(chain(2, (0, 4))).total_bytes > 0


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Random graphs with several outputs, reshapes and results in the middle."""
    graph = Graph()
    for i in range(draw(st.integers(1, 3))):
        graph.add(GraphNode(f"x{i}", [info(draw(st.integers(0, 300)))]))
    for i in range(draw(st.integers(1, 25))):
        refs = graph.entries()
        inputs = draw(st.lists(st.sampled_from(refs), min_size=1, max_size=3))
        if draw(st.integers(0, 4)) == 0:
            outputs = [graph.info(inputs[0])]
            graph.add(GraphNode(f"r{i}", outputs, NOP, inputs[:1]))
            continue
        kinds = st.sampled_from(["float32", "int8", "float64", "bool"])
        outputs = [
            TensorInfo((draw(st.integers(0, 300)),), dtype(draw(kinds)))
            for _ in range(draw(st.integers(1, 2)))
        ]
        graph.add(GraphNode(f"k{i}", outputs, f"k{i}", inputs))
    graph.heads = draw(st.lists(st.sampled_from(graph.entries()), min_size=1, max_size=3))
    return graph


def value_of(graph: Graph, ref: TensorRef) -> TensorRef:
    """The tensor whose elements `ref` shows: itself, or what it reshapes."""
    while graph.nodes[ref.node].func == NOP:
        ref = graph.nodes[ref.node].inputs[0]
    return ref


@settings(max_examples=200)
@given(graphs())
def test_every_read_finds_what_was_written(graph: Graph) -> None:
    plan = plan_memory(graph)
    content: dict[int, TensorRef] = {}
    for index, node in enumerate(graph.nodes):
        for ref in node.inputs:
            assert content[plan.storage_ids[ref]] == value_of(graph, ref)
        if node.func == NOP:
            continue
        written = [plan.storage_ids[TensorRef(index, j)] for j in range(len(node.outputs))]
        assert len(set(written)) == len(written)
        assert not {plan.storage_ids[ref] for ref in node.inputs} & set(written)
        for j, storage in enumerate(written):
            content[storage] = TensorRef(index, j)
    for ref in graph.heads:
        assert content[plan.storage_ids[ref]] == value_of(graph, ref)
    for ref in graph.entries():
        assert plan.sizes[plan.storage_ids[ref]] >= graph.info(ref).nbytes
    inputs = [i for i, n in enumerate(graph.nodes) if n.is_input]
    for i in inputs:
        assert content[plan.storage_ids[TensorRef(i)]] == TensorRef(i)


def test_storage_of_expressions_is_told() -> None:
    x, y = relay.var("x", shape=(10,)), relay.var("y", shape=(1,))
    chain = relay.exp(relay.exp(relay.exp(relay.add(x, relay.exp(y)))))
    mod = relay.transform.FuseOps(0)(tvm.IRModule.from_expr(relay.Function([x, y], chain)))
    main = relay.transform.InferType()(mod)["main"]
    plan = relay.backend._backend.GraphPlanMemory(main)
    infos = plan.expr_to_storage_info
    assert {i for info in infos.values() for i in info.storage_ids} == {0, 1, 2, 3}
    assert {k for info in infos.values() for k in info.device_types} == {1}
    assert [infos[p].storage_sizes for p in main.params] == [[40], [4]]

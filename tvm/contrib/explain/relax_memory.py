"""The plan of memory of a model of relax: the storages that StaticPlanBlockMemory made, and who uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.relax.expr import Call, ExternFunc, Function, Tuple, Var
from tvm.relax.transform.call_tir_rewrite import DESTINATION_PASSING

from .memory import memory_record
from .record import Life, Memory, Storage
from .relax_graphs import CallGraph, bindings_of, op_name, tensors_of

_STORAGE, _TENSOR = "relax.memory.alloc_storage", "relax.memory.alloc_tensor"
_OPEN_CALL = "relax.vm.call_tir_dyn"


def planned_memory(built: CallGraph, planned: Function) -> Memory:
    """What memory the calls use.

    Parameters
    ----------
    built : CallGraph
        The calls before they had memory.
    planned : relax.Function
        The same function, its tensors in storages.
    """
    nodes = built.graph.nodes
    storages: list[Storage] = []
    own = _storages_of_results(planned, storages)
    used: dict[int, list[int]] = {}  # the storages of a node's tensors
    for number, node in enumerate(nodes):
        if number not in built.calls:
            storages += [Storage(tensor.bytes, "input") for tensor in node.outputs]
            used[number] = list(range(len(storages) - len(node.outputs), len(storages)))
            continue
        call = built.calls[number]
        if op_name(call) in DESTINATION_PASSING:
            shared = _overwritten(call, built, used)
            fresh = iter(() if all([s is not None for s in shared]) else next(own))
            used[number] = [next(fresh) if place is None else place for place in shared]
            continue
        storages += [Storage(tensor.bytes, "intermediate") for tensor in node.outputs]
        used[number] = list(range(len(storages) - len(node.outputs), len(storages)))
    for number in built.results:
        for place in used[number]:
            if storages[place].kind == "intermediate":
                storages[place].kind = "output"
    return memory_record(_with_weights(storages, built), *_lives(built, used))


def _storages_of_results(planned: Function, storages: list[Storage]) -> Iterator[list[int]]:
    """For each call that writes into new tensors their storages, which are listed, too."""
    places: dict[Var, int] = {}
    tensors: dict[Var, int] = {}
    for binding in bindings_of(planned):
        call = binding.value
        if not isinstance(call, Call):
            continue
        first: Any = call.args[0] if call.args else None
        if op_name(call) == _STORAGE:
            places[binding.var] = len(storages)
            storages.append(Storage(int(first.values[0]), "intermediate"))
        elif op_name(call) == _TENSOR:
            tensors[binding.var] = places[first]
    return _written(planned, tensors)


def _written(planned: Function, tensors: dict[Var, int]) -> Iterator[list[int]]:
    for binding in bindings_of(planned):
        call = binding.value
        if not isinstance(call, Call):
            continue
        if not isinstance(call.op, (ExternFunc, GlobalVar)) and op_name(call) != _OPEN_CALL:
            continue
        args = [a for arg in call.args for a in (arg.fields if isinstance(arg, Tuple) else [arg])]
        # a tensor is given to a call for the first time where it is written
        if fresh := [tensors.pop(a) for a in args if isinstance(a, Var) and a in tensors]:
            yield fresh


def _overwritten(call: Call, built: CallGraph, used: dict[int, list[int]]) -> list[int | None]:
    """For each result the storage of the input that it takes the place of; None where it is new."""
    results = tensors_of(call.sinfo_args[0])
    if op_name(call) != "relax.call_tir_inplace":
        return [None] * len(results)
    given: Any = call.args[1]
    args: list[Any] = list(given.fields) if isinstance(given, Tuple) else [given]
    indices = [int(i) for i in call.attrs.inplace_indices]
    sources = [built.places[args[i]][0] if i >= 0 else None for i in indices]
    return [None if source is None else used[source][0] for source in sources]


def _lives(built: CallGraph, used: dict[int, list[int]]) -> tuple[list[Life], int]:
    """How long each tensor is needed, and the last step; inputs and results stay to the end."""
    steps = {number: step for step, number in enumerate(built.calls)}
    last = max(len(steps) - 1, 0)
    ends: dict[int, int] = dict(steps)
    for number, operands in built.operands.items():
        for operand in operands:
            ends[operand] = max(ends.get(operand, 0), steps[number])
    lives: list[Life] = []
    for number, node in enumerate(built.graph.nodes):
        is_kept = number not in steps or number in built.results
        first, end = steps.get(number, 0), last if is_kept else ends[number]
        lives += [
            Life(number, place, tensor.bytes, first, end)
            for tensor, place in zip(node.outputs, used[number], strict=True)
        ]
    return lives, last


def _with_weights(storages: list[Storage], built: CallGraph) -> list[Storage]:
    distinct = {
        id(c.data): t
        for n in built.calls
        for c in built.constants[n]
        for t in tensors_of(c.struct_info)
    }
    return [*storages, *[Storage(tensor.bytes, "weight") for tensor in distinct.values()]]

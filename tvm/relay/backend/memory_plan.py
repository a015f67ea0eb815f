"""Static memory planning: tensors whose lives do not overlap share storage.

Walking the nodes in order of execution, each output takes a free storage of a fitting size (the
smallest that is large enough, else the largest to be grown) and returns it after its last use.
Each device has storage of its own. Inputs keep theirs; results are never given back; a reshape shares its input's.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from tvm.relay.backend.graph import NOP, Graph, GraphNode, TensorRef

ALIGNMENT = 64
# a free storage larger than this many times the request stays free for a larger tensor
MATCH_RANGE = 16


@dataclass(frozen=True)
class StoragePlan:
    """Storage of each tensor, and the bytes of each storage."""

    storage_ids: dict[TensorRef, int]
    sizes: list[int]

    @property
    def total_bytes(self) -> int:
        return sum(self.sizes)


def plan_memory(graph: Graph) -> StoragePlan:
    """Number the storage of every tensor of the graph."""
    return _Planner(graph).plan()


@dataclass
class _Planner:
    graph: Graph
    ids: dict[TensorRef, int] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)  # reads still to come, by storage
    device_keys: list[str] = field(default_factory=list)  # the device of each storage
    free: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # (size, storage), sorted

    def plan(self) -> StoragePlan:
        reads = self._count_reads()
        for index, node in enumerate(self.graph.nodes):
            refs = [TensorRef(index, j) for j in range(len(node.outputs))]
            if node.is_input:
                for ref in refs:
                    # one read too many: never given back
                    self._assign(ref, self._new_storage(ref), reads.get(ref, 0) + 1)
            else:
                self._allocate_outputs(node, refs, reads)
        return StoragePlan(self.ids, self.sizes)

    def _allocate_outputs(
        self, node: GraphNode, refs: list[TensorRef], reads: dict[TensorRef, int]
    ) -> None:
        for j, ref in enumerate(refs):
            if node.func == NOP:
                storage = self.ids[node.inputs[j]]
            else:
                storage = self._request(
                    _aligned(self.graph.info(ref).nbytes), self._device_key(ref)
                )
            self._assign(ref, storage, reads.get(ref, 0))
        for ref in node.inputs:
            self._release(self.ids[ref], 1)
        for ref in refs:  # an output that nobody reads
            self._release(self.ids[ref], 0)

    def _count_reads(self) -> dict[TensorRef, int]:
        reads: dict[TensorRef, int] = {}
        for node in self.graph.nodes:
            for ref in node.inputs:
                reads[ref] = reads.get(ref, 0) + 1
        for ref in self.graph.heads:
            reads[ref] = reads.get(ref, 0) + 1
        return reads

    def _assign(self, ref: TensorRef, storage: int, reads: int) -> None:
        self.ids[ref] = storage
        self.uses[storage] += reads

    def _new_storage(self, ref: TensorRef) -> int:
        return self._grow(_aligned(self.graph.info(ref).nbytes), self._device_key(ref))

    def _device_key(self, ref: TensorRef) -> str:
        device = self.graph.device(ref)
        return "" if device is None else f"{device.device_type_int}:{device.memory_scope}"

    def _grow(self, size: int, device_key: str) -> int:
        self.sizes.append(size)
        self.device_keys.append(device_key)
        self.uses.append(0)
        return len(self.sizes) - 1

    def _request(self, size: int, device_key: str) -> int:
        free = self.free.setdefault(device_key, [])
        position = bisect_left(free, (size, -1))
        if position < len(free) and free[position][0] <= size * MATCH_RANGE:
            return free.pop(position)[1]
        if position > 0 and free[position - 1][0] * MATCH_RANGE >= size:
            storage = free.pop(position - 1)[1]
            self.sizes[storage] = size
            return storage
        return self._grow(size, device_key)

    def _release(self, storage: int, reads: int) -> None:
        self.uses[storage] -= reads
        if self.uses[storage] == 0:
            entry = (self.sizes[storage], storage)
            free = self.free.setdefault(self.device_keys[storage], [])
            if entry not in free:
                insort(free, entry)


def _aligned(size: int) -> int:
    return max((size + ALIGNMENT - 1) // ALIGNMENT, 1) * ALIGNMENT

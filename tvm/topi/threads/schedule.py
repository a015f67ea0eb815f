"""The schedule of a kernel's stages on a device with threads.

What is injective is inlined. Each reduction becomes a kernel of its own, together with the element-wise stages behind
it if it is the last one, in one of three ways:

* a product of tensors whose elements are read many times: tiles in shared memory (`tiles`);
* a long sum for each of few elements: all threads of a block sum parts of it (`rows`);
* others: one element a thread (`elements`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ..generic.schedules import as_outputs, inline_injective
from ..tag import is_broadcast
from ..utils import operations_above
from .device import GpuInfo, current_device
from .elements import bind_elements
from .reads import Reads
from .rows import is_row_reduction, schedule_rows
from .tiles import find_tiling, schedule_tiles


def schedule(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule the stages above outputs for the current target's device.

    Parameters
    ----------
    outs : te.Tensor or list of te.Tensor
        The outputs.
    """
    outputs = as_outputs(outs)
    s = te.create_schedule([x.op for x in outputs])
    inline_injective(s, outputs)
    info = current_device()
    ops = list(dict.fromkeys([op for x in outputs for op in operations_above(x.op)]))
    computes = [op for op in ops if isinstance(op, te.tensor.ComputeOp)]
    inlined = _Inlined(s, computes, outputs)
    done: set[int] = set()
    for op in computes:
        if id(op) in done or inlined.is_inlined(op):
            continue
        last = inlined.epilogue_of(op) if op.reduce_axis else op
        done.update((id(op), id(last)))
        if op.reduce_axis:
            _schedule_reduction(s, op, last, info)
        else:
            bind_elements(s, op.output(0), info)
    return s


def _schedule_reduction(
    s: te.Schedule, op: te.tensor.ComputeOp, last: te.tensor.ComputeOp, info: GpuInfo
) -> None:
    """A reduction whose results end in the stage ``last``, which may be itself."""
    reads = Reads.of(op)
    if reads is not None and op.num_outputs == 1:
        if is_row_reduction(reads):
            schedule_rows(s, op, last, info)
            return
        if (tiling := find_tiling(reads, info)) is not None:
            schedule_tiles(s, op, last, tiling)
            return
    thread = bind_elements(s, last.output(0), info)
    if op is not last and thread is not None:
        s[op].set_scope("local")
        s[op].compute_at(s[last], thread)


class _Inlined:
    """Which stages are inlined, and what reads what."""

    def __init__(
        self, s: te.Schedule, computes: Sequence[te.tensor.ComputeOp], outputs: Sequence[te.Tensor]
    ) -> None:
        self.outputs = {id(x.op) for x in outputs}
        self.inlined = {id(op) for op in computes if s[op].is_inlined}
        self.readers: dict[int, list[te.tensor.Operation]] = {}
        above = dict.fromkeys([op for x in outputs for op in operations_above(x.op)])
        for op in above:
            for tensor in op.input_tensors:
                self.readers.setdefault(id(tensor.op), []).append(op)

    def is_inlined(self, op: te.tensor.Operation) -> bool:
        """Whether the stage has no loops of its own."""
        return id(op) in self.inlined

    def epilogue_of(self, op: te.tensor.ComputeOp) -> te.tensor.ComputeOp:
        """The output that a reduction ends in through element-wise stages alone; itself if there is none."""
        if id(op) in self.outputs or op.num_outputs > 1 or len(self.outputs) > 1:
            return op
        pending, last = list(self.readers.get(id(op), ())), None
        while pending:
            reader = pending.pop()
            if not isinstance(reader, te.tensor.ComputeOp) or not is_broadcast(reader.tag):
                return op
            if id(reader) in self.outputs:
                last = reader
            elif self.is_inlined(reader):
                pending += self.readers.get(id(reader), ())
            else:
                return op
        if last is None or _extents(last) != _extents(op):
            return op
        return last


def _extents(op: te.tensor.ComputeOp) -> list[str]:
    return [str(axis.dom) for axis in op.axis]

"""What a report tells, as plain records: numbers, texts and indices that JSON can hold.

Seconds are seconds, sizes are bytes, operations count a multiply-add as two. Lines of texts are
counted from 1, and 0 stands for a line whose origin is not known.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

VERSION = 1  # of the form of the record


@dataclass
class Tensor:
    """What flows between nodes, or a weight."""

    shape: list[int]
    dtype: str
    bytes: int


@dataclass
class Node:
    """An operator of the model as it was imported, or a call of a kernel in what is built from it."""

    op: str  # nn.conv2d; input; of calls the operators that were fused, joined by +
    name: str  # what the model's author calls it, if that is known
    outputs: list[Tensor]
    layout: str = ""  # NCHW16c; empty where the operator has none
    detail: str = ""  # attributes
    weights: list[Tensor] = field(default_factory=list)  # constants among its operands
    kernel: int = -1  # index of the kernel of a call
    seconds: float = 0.0
    # nodes of the other graph that it stands for; none where a pass made operators anew
    others: list[int] = field(default_factory=list)
    is_folded: bool = False  # depends on no input, and was computed while the model was built
    x: float = 0.0
    y: float = 0.0


@dataclass
class Graph:
    """Nodes in order, what uses what, and where they are drawn."""

    name: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    bends: list[list[float]] = field(default_factory=list)  # of edges: x, y, x, y, ...


@dataclass
class Code:
    """One form of a kernel."""

    language: str  # te, tir, llvm, assembly, or that of a GPU
    text: str
    lines: list[int] = field(default_factory=list)  # of each line: the line of `tir` it is from
    note: str = ""  # why lines are not linked


@dataclass
class Candidate:
    """A configuration that the cost model ranked."""

    tile: str
    cost: float  # by the model, in cycles where 1 is the peak of multiply-adds


@dataclass
class Choice:
    """What was chosen for a kernel, by whom, and among what."""

    tile: str
    share: float  # of the peak of multiplications, as predicted
    origin: str
    candidates: list[Candidate] = field(default_factory=list)  # cheapest first
    count: int = 0  # of all that were ranked


@dataclass
class Kernel:
    """A kernel, all of its calls together."""

    name: str
    operators: list[str]
    calls: int = 0
    seconds: float = 0.0  # of all calls in one run
    flops: float = 0.0  # of one call
    bytes: float = 0.0  # of the arguments of one call
    workspace: int = 0  # bytes that a call allocates
    roof_seconds: float | None = None  # the least time of one call on this machine
    bound: str = ""  # what sets it: compute or memory
    choices: list[Choice] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)  # calls: nodes of the built graph
    codes: list[Code] = field(default_factory=list)
    compile_seconds: dict[str, float] = field(default_factory=dict)  # lowering, LLVM, assembly


@dataclass
class Storage:
    """Memory of the plan, shared by tensors whose lives do not overlap."""

    bytes: int
    kind: str  # intermediate, input, output or weight


@dataclass
class Life:
    """How long a tensor is needed: from one call to another, both included."""

    node: int  # of the built graph
    storage: int
    bytes: int
    first: int
    last: int


@dataclass
class Memory:
    """The plan of memory. Steps are calls in order."""

    storages: list[Storage] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)  # of tensors that are not weights
    live: list[int] = field(default_factory=list)  # bytes in use at each step, without weights
    planned: int = 0  # bytes of all storages but weights
    peak: int = 0  # the largest of `live`
    peak_step: int = 0
    weights: int = 0


@dataclass
class Weight:
    """A constant of the built model."""

    name: str
    tensor: Tensor
    node: int  # of the built graph, the first that reads it
    original: int  # bytes of the constants of the operators that this node computes


@dataclass
class Change:
    """What a pass did to one function, as a unified diff."""

    function: str
    diff: str
    is_cut: bool = False


@dataclass
class PassRun:
    """One run of a pass, or all runs of a pass on loops, kernel by kernel."""

    name: str
    depth: int
    seconds: float
    runs: int = 1
    changed: int = 0  # functions that are other ones after it
    changes: list[Change] = field(default_factory=list)


@dataclass
class Remark:
    """Something that costs time, why it is so, and what it costs."""

    kind: str  # unfused, layout, wide, float
    text: str
    why: str
    seconds: float | None = None
    node: int = -1  # of the built graph


@dataclass
class Machine:
    """Where kernels were measured."""

    name: str
    flops: float | None = None  # peak of multiply-adds, operations a second
    bandwidth: float | None = None  # bytes a second
    threads: int = 0
    note: str = ""


@dataclass
class Report:
    """All that is known of how a model was compiled and runs."""

    model: str
    target: str
    machine: Machine
    imported: Graph
    built: Graph
    kernels: list[Kernel]
    memory: Memory
    weights: list[Weight]
    passes: list[PassRun]
    remarks: list[Remark]
    phases: dict[str, float]  # seconds of the parts of the build
    seconds: float  # of one run of the model: the sum of its calls
    version: int = VERSION

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries and lists."""
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        """The report as JSON, which names every field as its record does."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

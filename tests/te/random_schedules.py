"""Random legal schedules of small programs, for comparing what they compute with the unscheduled.

    program = random_program(seed)
    program.schedule      # split, fused, reordered, attached, cached, annotated at random
    program.plain         # the same operations, every stage at the root
    program.args          # inputs, then outputs
    program.steps         # what was done, as text

The same seed gives the same program. Interpreter and code generators share it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm import IRModule, TVMError, te, tir
from tvm.arith import Analyzer
from tvm.te.schedule import lower_schedule
from tvm.te.schedule.graph import attach_path, sub_graph
from tvm.te.schedule.group import GroupOp
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform import InjectRollingBuffer

from .random_intrinsics import row_intrinsic
from .random_programs import OPERATORS
from .random_sizes import Sizes

__all__ = ["OPERATORS", "Program", "random_program"]


@dataclass
class Program:
    """A schedule, and what it has to agree with."""

    name: str
    args: list[te.Tensor]
    schedule: te.Schedule
    plain: te.Schedule
    sizes: dict[tir.Var, int] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    needs_device: bool = False
    """Whether loops are bound to threads of a device, which the interpreter runs in turn."""

    def arrays(self, seed: int = 0, unset: float = 0) -> list[np.ndarray]:
        """Random inputs, and outputs full of one value."""
        source = np.random.default_rng(seed)
        result = []
        for tensor in self.args:
            shape = [self._value(dim) for dim in tensor.shape]
            if not isinstance(tensor.op, te.tensor.PlaceholderOp):
                result.append(np.full(shape, unset, tensor.dtype))
            elif tensor.dtype.is_float:
                result.append(source.uniform(-1, 1, shape).astype(tensor.dtype))
            else:
                result.append(source.integers(0, 50, shape).astype(tensor.dtype))
        return result

    def _value(self, dim: Any) -> int:
        known: Any = {var: tir.const(value, var.dtype) for var, value in self.sizes.items()}
        return int(Analyzer().simplify(substitute(dim, known)))


def random_program(seed: int, operator: str | None = None) -> Program:
    """The program of a seed; of a random operator unless one is named."""
    rng = random.Random(seed)
    name = operator or rng.choice(list(OPERATORS))
    sizes = Sizes(rng)
    args = OPERATORS[name](rng, sizes)
    ops = [t.op for t in args if not isinstance(t.op, te.tensor.PlaceholderOp)]
    program = Program(name, args, te.create_schedule(ops), te.create_schedule(ops), sizes.values)
    _Scheduler(rng, program).run()
    return program


def _is_input(stage: te.Stage) -> bool:
    return isinstance(stage.op, te.tensor.PlaceholderOp)


def _ancestors(op: te.tensor.Operation) -> list[te.Tensor]:
    """The tensors that an operation needs, directly or not."""
    found: dict[te.Tensor, None] = {}
    for tensor in op.input_tensors:
        found[tensor] = None
        found.update(dict.fromkeys(_ancestors(tensor.op)))
    return list(found)


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]


def _loops_outside_intrinsics(stage: te.Stage) -> list[Any]:
    loops = list(stage.leaf_iter_vars)
    for position, loop in enumerate(loops):
        if stage.attr_of(loop).tensor_intrin is not None:
            return loops[:position]
    return loops


def _loops_around_reads(stage: te.Stage) -> list[Any]:
    """The loops inside which all that a stage reads is needed: what a reduction begins with is not
    needed inside its loops.
    """
    loops = _loops_outside_intrinsics(stage)
    op = stage.op
    if isinstance(op, te.tensor.ComputeOp) and op.reduce_axis and op.body[0].init:
        reducing = [k for k, iv in enumerate(loops) if iv.iter_type == tir.IterVar.CommReduce]
        return loops[: reducing[0]]
    return loops


class _Scheduler:
    """Applies random primitives; consumers before producers, so that attach points stay."""

    def __init__(self, rng: random.Random, program: Program) -> None:
        self.rng = rng
        self.program = program
        self.schedule = program.schedule
        self.placed: dict[te.Stage, None] = {}
        self.in_threads: dict[te.Stage, None] = {}
        self.binds = rng.random() < 0.06
        self.has_intrinsics = False

    def note(self, text: str) -> None:
        self.program.steps.append(text)

    def happens(self, chance: float) -> bool:
        return self.rng.random() < chance

    def run(self) -> None:
        self.add_caches()
        for stage in self.schedule.stages:
            if isinstance(stage.op, te.tensor.ScanOp) and self.happens(0.15):
                self.surround(stage)
        for stage in reversed(list(self.schedule.stages)):
            if not _is_input(stage):
                self.settle(stage)
            self.placed[stage] = None
        self.bounds = te.schedule.InferBound(self.schedule.normalize())
        for stage in reversed(self.schedule.stages):
            if not stage.is_inlined and not _is_input(stage) and stage not in self.in_threads:
                self.annotate(stage)
        self.withdraw_rolls()

    def settle(self, stage: te.Stage) -> None:
        """Where a stage runs and in which loops; those that share threads stay as they are."""
        if stage not in self.in_threads:
            self.place(stage)
        if not stage.is_inlined and not (self.happens(0.12) and self.tensorize(stage)):
            self.store(stage)
            if stage not in self.in_threads:
                self.transform(stage)

    # ---- new stages

    def add_caches(self) -> None:
        for stage in list(self.schedule.stages):
            op = stage.op
            if self.happens(0.25):
                self.cache_read(stage)
            if not isinstance(op, te.tensor.ComputeOp):
                continue
            if self.happens(0.25):
                self.cache_write(stage)
            elif op.reduce_axis and not op.body[0].init and self.happens(0.35):
                self.factor(stage)

    def cache_read(self, stage: te.Stage) -> None:
        tensor = self.rng.choice(stage.op.outputs)
        readers = [s.op for s in self.schedule.stages if self._may_read_a_copy(s, tensor)]
        if not readers:
            return
        if self.happens(0.3):
            readers = self.rng.sample(readers, self.rng.randint(1, len(readers)))
        scope = self.rng.choice(["global", "local"])
        self.note(f"cache_read({tensor.name}, {scope}, {[op.name for op in readers]})")
        self.schedule.cache_read(tensor, scope, readers)

    def _may_read_a_copy(self, stage: te.Stage, tensor: te.Tensor) -> bool:
        # the copy stands beside what it copies: not in the step of a scan that reads it
        source = self.schedule[tensor]
        is_compute = isinstance(stage.op, te.tensor.ComputeOp)
        beside = stage.group is source.group or tensor.op.name == "state"
        return is_compute and tensor in stage.op.input_tensors and beside

    def cache_write(self, stage: te.Stage) -> None:
        op = stage.op
        if op.num_outputs == 1 and op.axis and self.happens(0.3):
            # parts of steps that lie before the first one would read what is not there
            axis = self.rng.choice(op.axis[1:] if stage.is_state else op.axis)
            factor = self.rng.randint(1, 5)
            self.note(f"split({op.name}, {axis.var.name}, {factor}) before cache_write")
            stage.split(axis, factor=factor)
        scope = self.rng.choice(["global", "local"])
        self.note(f"cache_write({op.name}, {scope})")
        self.schedule.cache_write(list(op.outputs), scope)

    def factor(self, stage: te.Stage) -> None:
        chosen = self.rng.choice(stage.op.reduce_axis)
        if self.happens(0.8):
            chosen = self.rng.choice(stage.split(chosen, factor=self.rng.randint(1, 4)))
        position = self.rng.randint(-len(stage.op.axis) - 1, len(stage.op.axis))
        self.note(f"rfactor({stage.op.name}, {chosen.var.name}, {position})")
        self.schedule.rfactor(stage.op.output(0), chosen, position)

    # ---- intrinsics

    def tensorize(self, stage: te.Stage) -> bool:
        """Let an intrinsic do rows of a stage, if it can and nothing was said of the stage."""
        op = stage.op
        is_plain = type(op) is te.tensor.ComputeOp and op.num_outputs == 1 and op.axis
        is_free = not (stage.is_rolling or stage.is_state or stage in self.in_threads)
        memory = [stage, *[self.schedule[t] for t in op.input_tensors]]
        in_order = all(s.scope in ("", "global") and not s.layout.maps for s in memory)
        if not (is_plain and is_free and in_order) or stage.relations:
            return False
        inner = [op.axis[-1], *op.reduce_axis]
        if not all(isinstance(iv.dom.extent, tir.IntImm) and iv.dom.extent > 0 for iv in inner):
            return False
        sizes = [self.rng.choice(_divisors(int(iv.dom.extent))) for iv in inner]
        intrinsic = row_intrinsic(op, sizes[0], sizes[-1])
        if intrinsic is None:
            return False
        parts = [stage.split(iv, factor=size) for iv, size in zip(inner, sizes, strict=True)]
        outer = [*op.axis[:-1], *[part[0] for part in parts]]
        stage.reorder(*self.rng.sample(outer, len(outer)), *[part[1] for part in parts])
        stage.tensorize(parts[0][1], intrinsic)
        try:
            self.lowered()
        except TVMError as error:
            if "tensorize" not in str(error) and "requires" not in str(error):
                raise
            stage.iter_var_attrs.pop(parts[0][1])
            return False
        self.note(f"tensorize({op.name}, {sizes})")
        self.has_intrinsics = True
        return True

    # ---- where a stage runs

    def surround(self, scan: te.Stage) -> None:
        """Run a scan within threads, each of which has a column to itself."""
        op = scan.op
        width = op.output(0).shape[1]
        init, update = self.schedule[op.init[0]], self.schedule[op.update[0]]
        body = [s for s in self.schedule.stages if s.attach_spec().attach_stage is scan]
        is_whole = all(s.op.axis[1] in s.leaf_iter_vars for s in (init, *body))
        if not (update.op.tag == "by column" and is_whole and isinstance(width, tir.IntImm)):
            return
        if int(width) == 0:
            return
        thread = te.thread_axis((0, int(width)), "threadIdx.x")
        scan.env_threads([thread])
        init.bind(init.op.axis[1], thread)
        update.bind(update.op.axis[1], thread)
        for stage in body:
            if stage is not update:
                stage.compute_at(update, update.op.axis[1])
        self.in_threads.update(dict.fromkeys([init, *body]))
        self.program.needs_device = True
        self.note(f"env_threads({op.name}), with all of its step")

    def gather(self, stage: te.Stage) -> bool:
        """Compute a stage and some of those before it as a group in a loop of their readers."""
        before = [t for t in _ancestors(stage.op) if not isinstance(t.op, te.tensor.PlaceholderOp)]
        start = self.rng.choice(before or list(stage.op.input_tensors) or [None])
        if start is None:
            return False
        ends, with_start = [stage.op.output(0)], bool(before) and self.happens(0.5)
        members = [self.schedule.stage_map[o] for o in sub_graph(ends, [start], with_start)]
        readers = [r for member in members for r in self.readers(member) if r not in members]
        is_free = all(
            isinstance(m.op, te.tensor.ComputeOp)
            and m.group is None
            and not (m.is_output or m.is_state or m in self.in_threads)
            and m.attach_stage is None
            for m in members
        )
        if not (members and readers and is_free and all(r in self.placed for r in readers)):
            return False
        group = self.schedule.create_group(ends, [start], with_start)
        self.note(f"create_group({stage.op.name}, {start.op.name}, {with_start})")
        self.attach(group, list(dict.fromkeys(readers)))
        return True

    def place(self, stage: te.Stage) -> None:
        if stage.is_output or stage.is_state or not isinstance(stage.op, te.tensor.ComputeOp):
            return
        readers = self.readers(stage)
        if self.happens(0.08) and self.gather(stage):
            return
        in_memory = self._is_read_by_buffer(stage)
        if not stage.op.reduce_axis and not in_memory and self.happens(0.25):
            self.note(f"compute_inline({stage.op.name})")
            stage.compute_inline()
        elif self.happens(0.7):
            self.attach(stage, self.readers(stage))

    def readers(self, stage: te.Stage) -> list[te.Stage]:
        """The stages that read a stage in the end; those inlined stand for their own readers."""
        found: list[te.Stage] = []
        for other in self.schedule.stages:
            if any(tensor in other.op.input_tensors for tensor in stage.op.outputs):
                found += self.readers(other) if other.is_inlined else [other]
        return list(dict.fromkeys(found))

    def attach(self, stage: te.Stage, readers: list[te.Stage]) -> None:
        """Compute a stage in a loop around all of its readers."""
        if any(isinstance(reader.op, te.tensor.ScanOp) for reader in readers):
            return
        inside = [[*attach_path(reader), *_loops_around_reads(reader)] for reader in readers]
        places = [
            (other, loop)
            for other in self.schedule.stages
            if other.group is stage.group and isinstance(other.op, te.tensor.ComputeOp)
            for loop in _loops_outside_intrinsics(other)
            if all(any(loop is iv for iv in loops) for loops in inside)
        ]
        if places:
            parent, loop = self.rng.choice(places)
            self.note(f"compute_at({stage.op.name}, {parent.op.name}, {loop.var.name})")
            stage.compute_at(parent, loop)
            if not isinstance(stage.op, GroupOp) and self.happens(0.15):
                stage.rolling_buffer()
                self.note(f"rolling_buffer({stage.op.name})")

    def withdraw_rolls(self) -> None:
        """Keep no buffer rolling if one cannot: that depends on all loops around, known at last."""
        rolling = [stage for stage in self.schedule.stages if stage.is_rolling]
        if not rolling:
            return
        try:
            InjectRollingBuffer()(IRModule({"main": self.lowered()}))
        except TVMError as error:
            if "rolling_buffer of" not in str(error):
                raise
            for stage in rolling:
                stage.is_rolling = False
            self.note("no rolling_buffer")

    def lowered(self) -> tir.PrimFunc:
        return lower_schedule(self.schedule, self.program.args)

    def store(self, stage: te.Stage) -> None:
        op = stage.op
        if stage.is_output or stage.is_state or not isinstance(op, te.tensor.ComputeOp):
            return
        by_buffer = self._is_read_by_buffer(stage)
        if not by_buffer and self.happens(0.1):
            self.note(f"set_scope({op.name}, local)")
            stage.set_scope("local")
        if self.happens(0.1):
            self.note(f"double_buffer({op.name})")
            stage.double_buffer()
        if op.axis and self.happens(0.1):
            axis = self.rng.choice(op.axis)
            stage.set_store_predicate(axis.var < axis.dom.min + axis.dom.extent)
            self.note(f"set_store_predicate({op.name}, {axis.var.name} within its domain)")
        if by_buffer:
            return
        if op.axis and self.happens(0.1):
            axis, factor = self.rng.choice(op.axis), self.rng.randint(1, 8)
            offset = self.rng.randrange(factor)
            self.note(f"storage_align({op.name}, {axis.var.name}, {factor}, {offset})")
            stage.storage_align(axis, factor, offset)
        elif op.axis and self.happens(0.1):
            self.lay_out(stage)

    def _is_read_by_buffer(self, stage: te.Stage) -> bool:
        """Whether statements written for compact memory read what a stage computes."""
        plain = te.tensor.ComputeOp, te.tensor.ScanOp
        return any(
            not isinstance(reader.op, plain)
            or len(_loops_outside_intrinsics(reader)) < len(reader.leaf_iter_vars)
            for reader in self.readers(stage)
        )

    def lay_out(self, stage: te.Stage) -> None:
        if self.happens(0.5):
            self.note(f"transform_layout({stage.op.name}, reversed)")
            stage.transform_layout(lambda *i: list(reversed(i)))
            return
        by = self.rng.randint(1, 4)
        if self.happens(0.2):
            # memory of two dimensions: that of a device
            self.note(f"transform_layout({stage.op.name}, split by {by} and separated)")
            stage.transform_layout(lambda *i: [i[0] // by, te.AXIS_SEPARATOR, *i[1:], i[0] % by])
            self.program.needs_device = True
            return
        self.note(f"transform_layout({stage.op.name}, split by {by})")
        stage.transform_layout(lambda *i: [i[0] // by, *i[1:], i[0] % by])

    # ---- loops

    def transform(self, stage: te.Stage) -> None:
        for _ in range(self.rng.randint(0, 4)):
            loops = _loops_outside_intrinsics(stage)
            loops = [iv for iv in loops if iv.iter_type is not tir.IterVar.Ordered]
            if not loops or isinstance(stage.op, te.tensor.ScanOp):
                return
            kinds = ["split", "split", "nparts", "fuse", "reorder", "tile"]
            # the loops of a script stay in their places
            is_script = isinstance(stage.op, te.tensor.HybridOp)
            kind = self.rng.choice(kinds[:3] if is_script else kinds)
            getattr(self, f"_{kind}")(stage, loops)

    def _split(self, stage: te.Stage, loops: list[Any]) -> None:
        loop, amount = self.rng.choice(loops), self.rng.randint(1, 5)
        stage.split(loop, factor=amount)
        self.note(f"split({stage.op.name}, {loop.var.name}, {amount})")

    def _nparts(self, stage: te.Stage, loops: list[Any]) -> None:
        loop, amount = self.rng.choice(loops), self.rng.randint(1, 5)
        stage.split(loop, nparts=amount)
        self.note(f"nparts({stage.op.name}, {loop.var.name}, {amount})")

    def _fuse(self, stage: te.Stage, loops: list[Any]) -> None:
        count = 0 if self.happens(0.1) else self.rng.randint(2, 3)
        if len(loops) >= count:
            at = self.rng.randint(0, len(loops) - count)
            self.note(f"fuse({stage.op.name}, {[iv.var.name for iv in loops[at : at + count]]})")
            stage.fuse(*loops[at : at + count])

    def _reorder(self, stage: te.Stage, loops: list[Any]) -> None:
        order = self.rng.sample(loops, self.rng.randint(1, len(loops)))
        stage.reorder(*order)
        self.note(f"reorder({stage.op.name}, {[iv.var.name for iv in order]})")

    def _tile(self, stage: te.Stage, loops: list[Any]) -> None:
        if len(loops) > 1:
            x, y = self.rng.sample(loops, 2)
            factors = self.rng.randint(1, 4), self.rng.randint(1, 4)
            stage.tile(x, y, *factors)
            self.note(f"tile({stage.op.name}, {x.var.name}, {y.var.name}, {factors})")

    # ---- how loops run

    def annotate(self, stage: te.Stage) -> None:
        loops = _loops_outside_intrinsics(stage)
        if not loops:
            return
        self.annotate_last(stage, loops[-1])
        if self.happens(0.15):
            self.annotate_any(stage, self.rng.choice(loops))
        first = loops[0]
        if self.has_intrinsics:
            pass  # memory inside threads is theirs, and not what intrinsics were declared for
        elif self.happens(0.08):
            self.divide_among_virtual_threads(stage)
        elif self.binds:
            self.bind(stage)
        is_root = stage.attach_spec().attach_stage is None and len(loops) > 1
        is_plain = stage.attr_of(first).bind_thread is None
        is_plain = is_plain and first.iter_type is tir.IterVar.DataPar
        if is_root and is_plain and self.happens(0.3):
            stage.parallel(first)
            self.note(f"parallel({stage.op.name}, {first.var.name})")
        if self.happens(0.15):
            loop = self.rng.choice(loops)
            key, value = self.rng.choice([("auto_unroll_max_step", 8), ("unroll_explicit", 1)])
            stage.pragma(loop, key, value)
            self.note(f"pragma({stage.op.name}, {loop.var.name}, {key})")
        is_plain = type(stage.op) is te.tensor.ComputeOp
        is_plain = is_plain and len(_loops_around_reads(stage)) == len(stage.leaf_iter_vars)
        if is_plain and stage.op.input_tensors and self.happens(0.1):
            loop, tensor = self.rng.choice(loops), self.rng.choice(stage.op.input_tensors)
            source = self.schedule[tensor]
            is_outside = source.attach_stage is None and source.group is None
            if is_outside and not source.is_state and not source.is_inlined:
                stage.prefetch(tensor, loop, 1)
                self.note(f"prefetch({stage.op.name}, {tensor.name}, {loop.var.name})")

    def free_loops(self, stage: te.Stage) -> list[Any]:
        """The loops of constant extent that threads may share."""
        return [
            iv
            for iv in _loops_outside_intrinsics(stage)
            if iv.iter_type is tir.IterVar.DataPar
            and stage.attr_of(iv).iter_type is tir.IterVar.DataPar
            and stage.attr_of(iv).bind_thread is None
            and isinstance(self.bounds[iv].extent, tir.IntImm)
            and int(self.bounds[iv].extent) > 0
            and isinstance(self.bounds[iv].min, tir.IntImm)
            and int(self.bounds[iv].min) == 0
        ]

    def divide_among_virtual_threads(self, stage: te.Stage) -> None:
        loops = self.free_loops(stage)
        if loops:
            loop = self.rng.choice(loops)
            stage.bind(loop, te.thread_axis("vthread"))
            self.note(f"bind({stage.op.name}, {loop.var.name}, vthread)")
            self.bounds = te.schedule.InferBound(self.schedule.normalize())

    def bind(self, stage: te.Stage) -> None:
        """Bind loops of a stage that is a kernel of its own."""
        is_compute = isinstance(stage.op, te.tensor.ComputeOp)
        is_apart = stage.group is None and stage.attach_stage is None
        if not (is_compute and is_apart and stage.scope in ("", "global")):
            return
        loops = self.free_loops(stage)
        tags = self.rng.sample(["blockIdx.x", "threadIdx.x", "threadIdx.y"], min(len(loops), 2))
        for tag, loop in zip(tags, self.rng.sample(loops, len(tags)), strict=True):
            stage.bind(loop, te.thread_axis(tag))
            self.program.needs_device = True
            self.note(f"bind({stage.op.name}, {loop.var.name}, {tag})")
        self.bounds = te.schedule.InferBound(self.schedule.normalize())

    def annotate_last(self, stage: te.Stage, last: Any) -> None:
        is_bound = stage.attr_of(last).bind_thread is not None
        if is_bound or not isinstance(self.bounds[last].extent, tir.IntImm):
            return
        attached = any(s.attach_ivar is last for s in self.schedule.stages)
        is_spatial = last.iter_type is tir.IterVar.DataPar
        if is_spatial and not attached and self.happens(0.3):
            stage.vectorize(last)
            self.note(f"vectorize({stage.op.name}, {last.var.name})")
        elif last.iter_type is not tir.IterVar.Ordered and self.happens(0.3):
            stage.unroll(last)
            self.note(f"unroll({stage.op.name}, {last.var.name})")

    def annotate_any(self, stage: te.Stage, loop: Any) -> None:
        """Vectorize, unroll or share a loop, with all that is inside it."""
        kind = self.rng.choice(["vectorize", "unroll", "parallel"])
        is_constant = isinstance(self.bounds[loop].extent, tir.IntImm)
        is_plain = stage.attr_of(loop).iter_type is loop.iter_type
        is_free = stage.attr_of(loop).bind_thread is None and is_plain
        is_spatial = loop.iter_type is tir.IterVar.DataPar
        if is_free and (kind == "parallel" or is_constant) and (kind == "unroll" or is_spatial):
            getattr(stage, kind)(loop)
            self.note(f"{kind}({stage.op.name}, {loop.var.name})")

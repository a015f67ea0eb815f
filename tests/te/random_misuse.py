"""Random sequences of primitives with arguments that make sense or none.

    outcome(seed)      # "" if the sequence was rejected properly, or computes the right numbers

Whatever is written, a schedule is rejected with an error of ours, or it computes what the unscheduled
program does: there is no third way.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tvm import IRModule, TVMError, lower, te, tir
from tvm.te.schedule import lower_schedule
from tvm.tir.interp import interpret

from .random_programs import OPERATORS
from .random_schedules import Program
from .random_sizes import Sizes

PRIMITIVES = (
    "split", "fuse", "tile", "reorder", "vectorize", "unroll", "parallel", "bind", "set_scope",
    "compute_at", "compute_inline", "compute_root", "storage_align", "double_buffer", "prefetch",
    "pragma", "rolling_buffer", "transform_layout", "env_threads", "cache_read", "cache_write",
    "rfactor", "create_group",
)  # fmt: skip


def outcome(seed: int) -> str:
    """What went wrong; nothing if the program was rejected or agrees."""
    rng = random.Random(seed)
    name = rng.choice(list(OPERATORS))
    sizes = Sizes(rng)
    args = OPERATORS[name](rng, sizes)
    ops = [t.op for t in args if not isinstance(t.op, te.tensor.PlaceholderOp)]
    program = Program(name, args, te.create_schedule(ops), te.create_schedule(ops), sizes.values)
    for _ in range(rng.randint(1, 6)):
        text, call = _Wild(rng, program.schedule).draw()
        try:
            call()
            program.steps.append(text)
        except TVMError:
            pass
        except Exception as error:
            return _failure(seed, program, f"{text} raises {type(error).__name__}: {error}")
    return _compare(seed, program)


def _compare(seed: int, program: Program) -> str:
    expected, actual = program.arrays(seed, 77), program.arrays(seed, 77)
    interpret(lower_schedule(program.plain, program.args), *expected)
    try:
        func = lower_schedule(program.schedule, program.args)
        lowered = lower(IRModule({"main": func}))["main"]
    except TVMError:
        return ""
    except Exception as error:
        return _failure(seed, program, f"lowering raises {type(error).__name__}: {error}")
    for what, runs in (("the program", func), ("the lowered program", lowered)):
        try:
            interpret(runs, *actual)
        except Exception as error:
            return _failure(seed, program, f"{what} raises {type(error).__name__}: {error}")
        for got, wanted in zip(actual, expected, strict=True):
            if not np.allclose(got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True):
                return _failure(
                    seed, program, f"{what} gives {got.ravel()[:6]}, not {wanted.ravel()[:6]}"
                )
    return ""


def _failure(seed: int, program: Program, text: str) -> str:
    return f"seed {seed} ({program.name}): {text}\n    {'; '.join(program.steps)}"


class _Wild:
    """Draws calls of primitives."""

    def __init__(self, rng: random.Random, schedule: te.Schedule) -> None:
        self.rng = rng
        self.schedule = schedule
        self.stage = rng.choice(schedule.stages)

    def draw(self) -> tuple[str, Any]:
        name = self.rng.choice(PRIMITIVES)
        is_argument = self.stage.is_output or isinstance(self.stage.op, te.tensor.PlaceholderOp)
        if name == "transform_layout" and is_argument:
            name = "split"  # that changes the shape of an argument
        on_schedule = name in ("cache_read", "cache_write", "rfactor", "create_group")
        receiver = self.schedule if on_schedule else self.stage
        args = getattr(self, f"_{name}")()
        shown = ", ".join([_shown(arg) for arg in args])
        who = "s" if on_schedule else self.stage.op.name
        return f"{who}.{name}({shown})", lambda: getattr(receiver, name)(*args)

    # ---- arguments, right in most cases

    def odd(self, *right: Any) -> Any:
        """One of the given values or, now and then, something else."""
        if self.rng.random() < 0.9:
            return self.rng.choice(right)
        return self.rng.choice([None, 0, -1, 2, 1.5, "i", True, self.tensor(), self.axis(), []])

    def number(self) -> Any:
        return self.odd(1, 2, 3, 4, 5)

    def loop(self) -> Any:
        loops = self.stage.leaf_iter_vars if self.rng.random() < 0.9 else self.any_axes()
        return self.odd(*loops) if loops else None

    def any_axes(self) -> list[Any]:
        return [iv for stage in self.schedule.stages for iv in stage.all_iter_vars]

    def axis(self) -> Any:
        axes = self.any_axes()
        return self.rng.choice(axes) if axes else None

    def tensor(self) -> te.Tensor:
        return self.rng.choice(self.rng.choice(self.schedule.stages).op.outputs)

    def thread(self) -> Any:
        tag = self.rng.choice(["threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread"])
        return self.odd(te.thread_axis(tag), te.thread_axis((0, self.rng.randint(1, 4)), tag))

    def scope(self) -> Any:
        return self.odd("global", "local", "shared", "warp", "glocal", "")

    def _split(self) -> list[Any]:
        if self.rng.random() < 0.5:
            return [self.loop(), self.number()]
        return [self.loop(), None, self.number()]

    def _fuse(self) -> list[Any]:
        return [self.loop() for _ in range(self.rng.randint(0, 3))]

    def _tile(self) -> list[Any]:
        return [self.loop(), self.loop(), self.number(), self.number()]

    def _reorder(self) -> list[Any]:
        return [self.loop() for _ in range(self.rng.randint(0, 3))]

    def _vectorize(self) -> list[Any]:
        return [self.loop()]

    _unroll = _parallel = _vectorize

    def _bind(self) -> list[Any]:
        loop = self.loop()
        if isinstance(loop, tir.IterVar) and loop.iter_type is tir.IterVar.CommReduce:
            loop = None  # the interpreter has no threads that work together
        return [loop, self.thread()]

    def _set_scope(self) -> list[Any]:
        return [self.scope()]

    def _compute_at(self) -> list[Any]:
        parent = self.rng.choice(self.schedule.stages)
        loop = self.odd(*parent.leaf_iter_vars) if parent.leaf_iter_vars else self.axis()
        return [self.odd(parent), loop]

    def _compute_inline(self) -> list[Any]:
        return []

    _compute_root = _double_buffer = _rolling_buffer = _compute_inline

    def _storage_align(self) -> list[Any]:
        return [self.odd(*self.stage.op.root_iter_vars() or [None]), self.number(), self.number()]

    def _prefetch(self) -> list[Any]:
        inputs = self.stage.op.input_tensors
        return [self.odd(*inputs or [None]), self.loop(), self.number()]

    def _pragma(self) -> list[Any]:
        name = self.odd("auto_unroll_max_step", "unroll_explicit", "unroll", "vectorize", "mine")
        return [self.loop(), name, self.odd(1, 4, 16)]

    def _transform_layout(self) -> list[Any]:
        by = self.rng.randint(0, 3)
        maps = [
            lambda *i: list(reversed(i)),
            lambda *i: [i[0] // by, *i[1:], i[0] % by] if i else [],
            lambda *i: [x + 1 for x in i],
            lambda i, j: [i, j],
            lambda *i: [x // 2 for x in i],
        ]
        return [self.odd(*maps)]

    def _env_threads(self) -> list[Any]:
        return [self.odd([self.thread()])]

    def _cache_read(self) -> list[Any]:
        tensor = self.tensor()
        readers = [s.op for s in self.schedule.stages if tensor in s.op.input_tensors]
        return [self.odd(tensor), self.scope(), self.odd(readers)]

    def _cache_write(self) -> list[Any]:
        outputs = list(self.stage.op.outputs)
        return [self.odd(outputs, outputs[0]), self.scope()]

    def _rfactor(self) -> list[Any]:
        return [self.odd(self.stage.op.output(0)), self.loop(), self.odd(0, 0, 1, -1)]

    def _create_group(self) -> list[Any]:
        return [self.odd(self.tensor()), self.odd(self.tensor(), [self.tensor()])]


def _shown(arg: Any) -> str:
    if isinstance(arg, tir.IterVar):
        return str(arg.var.name)
    if isinstance(arg, te.Tensor):
        return str(arg.op.name)
    if isinstance(arg, list):
        return "[" + ", ".join([_shown(item) for item in arg]) + "]"
    return getattr(arg, "__name__", None) or str(arg).split("(", maxsplit=1)[0]

"""Running a kernel with all threads of a block at once, so that they can wait for each other."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np

from tests.threads import run_in_threads
from tvm import tir
from tvm.tir.interp import Interpreter


class Worker(Interpreter):
    """One thread of a block; memory of scopes shared and warp is that of its ``team``."""

    def __init__(self, team: Team, numbers: dict[str, int]) -> None:
        super().__init__()
        self.team, self.numbers = team, numbers

    def visit_attr_stmt(self, node: Any) -> None:
        if node.attr_key == "thread_extent":
            self.env[node.node.var] = self.numbers.get(node.node.thread_tag, 0)
            self.visit(node.body)
        else:
            super().visit_attr_stmt(node)

    def visit_for(self, node: Any) -> None:
        if node.kind is not tir.ForKind.THREAD_BINDING:
            super().visit_for(node)
            return
        self.env[node.loop_var] = self.numbers.get(node.thread_binding.thread_tag, 0)
        self.visit(node.body)

    def _allocate(self, var: Any, dtype: Any, extents: Any, origin: Any = ()) -> None:
        if not var.type_annotation.storage_scope.startswith(("shared", "warp")):
            super()._allocate(var, dtype, extents, origin)
            return
        self.team.wait()
        with self.team.lock:
            if var not in self.team.shared:
                super()._allocate(var, dtype, extents, origin)
                self.team.shared[var] = self.memory[var]
        self.memory[var] = self.team.shared[var]

    def _call_tvm_storage_sync(self, node: Any) -> int:
        self.team.wait()
        return 0

    def _call_tvm_warp_activemask(self, node: Any) -> int:
        return (1 << self.team.barrier.parties) - 1

    def _call_tvm_warp_shuffle(self, node: Any) -> Any:
        """Every thread shows its value, and takes that of another one."""
        _, value, other, width, _ = [self.visit(arg) for arg in node.args]
        me = self.numbers["threadIdx.x"]
        self.team.shown[me] = value
        self.team.wait()
        found = self.team.shown[me // width * width + other]
        self.team.wait()
        return found


class Team:
    """The threads of one block."""

    def __init__(self, count: int) -> None:
        self.barrier = threading.Barrier(count, timeout=600)
        self.lock = threading.Lock()
        self.shared: dict[Any, Any] = {}
        self.shown: dict[int, Any] = {}

    def wait(self) -> None:
        self.barrier.wait()


def run_block(func: tir.PrimFunc, extents: dict[str, int], *arrays: np.ndarray) -> None:
    """Run a kernel of one block, on its arguments in place."""
    every = list(itertools.product(*[range(extent) for extent in extents.values()]))
    team = Team(len(every))
    errors: list[BaseException] = []

    def run(numbers: tuple[int, ...]) -> None:
        worker = Worker(team, dict(zip(extents, numbers, strict=True)))
        for param, array in zip(func.params, arrays, strict=True):
            worker.bind_argument(func.buffer_map[param], array)
        try:
            worker.visit(func.body)
        except BaseException as error:
            errors.append(error)
            team.barrier.abort()

    run_in_threads(run, [(numbers,) for numbers in every])
    if errors:
        raise errors[0]

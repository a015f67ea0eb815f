"""What a report needs to know of a compiled program, whatever it was written in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te
from tvm._ffi.runtime_ctypes import Device
from tvm.relay.op.registry import OpPattern
from tvm.target import Target
from tvm.tir import PrimFunc
from tvm.topi.choice import Choice

from .record import Graph, Memory, Weight


@dataclass(frozen=True)
class KernelSource:
    """A kernel before it is compiled."""

    name: str
    func: PrimFunc
    operators: tuple[str, ...]  # operands first
    heaviest: tuple[OpPattern, str]  # the operator that fuses least, and how it does
    schedule: te.Schedule | None = None
    choices: tuple[Choice, ...] = ()


class Program(ABC):
    """A model as it was imported and what was compiled of it."""

    target: Target
    kernels: Sequence[KernelSource]
    imported: Graph
    built: Graph
    traffic: Mapping[int, int]  # bytes that a call reads and writes, by its node in `built`

    @abstractmethod
    def call_seconds(self, dev: Device, inputs: Mapping[str, Any], repeat: int) -> dict[int, float]:
        """The shortest time of each call in several runs, by its node in `built`.

        Parameters
        ----------
        dev : Device
            Where it runs.
        inputs : dict of str to array
            Values of inputs; others are random.
        repeat : int
            How often it runs, at least once.
        """

    @abstractmethod
    def memory(self) -> Memory:
        """The plan of memory."""

    @abstractmethod
    def weights(self) -> list[Weight]:
        """The constants, the largest first."""

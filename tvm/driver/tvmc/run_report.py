"""What `tvmc run` says it did.

ran small.tar on cpu (graph executor)
  input   data      float32[1, 3, 6, 6]  random
  output  logits    float32[1, 5]        0.7121 -1.093 0.1126 2.338 ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_SHOWN = 4  # elements of an output
_EXECUTORS = {"graph": "graph executor", "aot": "AOT executor", "vm": "virtual machine"}

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class RunConditions:
    """What a model ran on, and with which inputs."""

    device: str
    executor: str  # "graph", "aot" or "vm"
    inputs: Mapping[str, str]  # types by name, "float32[1, 3, 6, 6]"
    origins: Mapping[str, str]  # "given", "random", "zeros" or "ones", by name
    output_names: Sequence[str] = ()  # as the imported model has them, if it is known


def type_text(value: np.ndarray[Any, Any]) -> str:
    """The type of an array: ``float32[1, 3, 6, 6]``."""
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def run_report(path: str, conditions: RunConditions, outputs: Arrays) -> str:
    """The lines of the report."""
    rows = [
        ("input", name, text, conditions.origins[name]) for name, text in conditions.inputs.items()
    ]
    own_names = conditions.output_names or outputs
    rows += [
        ("output", name, type_text(value), _first_values(value))
        for name, value in zip(own_names, outputs.values(), strict=True)
    ]
    names = max([len(row[1]) for row in rows], default=0)
    types = max([len(row[2]) for row in rows], default=0)
    lines = [f"ran {path} on {conditions.device} ({_EXECUTORS[conditions.executor]})"]
    lines += [f"  {kind:6}  {name:{names}}  {ty:{types}}  {rest}" for kind, name, ty, rest in rows]
    return "\n".join([line.rstrip() for line in lines])


def _first_values(value: np.ndarray[Any, Any]) -> str:
    flat = value.reshape(-1)
    plain = flat[:_SHOWN].tolist()
    texts = [f"{item:.4g}" if isinstance(item, float) else str(item) for item in plain]
    return " ".join([*texts, "..."] if flat.size > _SHOWN else texts)

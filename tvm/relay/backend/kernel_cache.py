"""The cache of lowered kernels: their loops on disk, found by the fused function and all that shapes them.

    <TVM_CACHE_DIR>/objects/ab/cdef....kernel

What the package itself makes of a function depends on the function, its name, the target, the processor, the
pass context and the package's own files. Where others take part - a strategy, a schedule, a pass, records of
tuning, instruments that watch - nothing is kept and nothing taken.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tvm import knobs
from tvm.codegen.cache import cache_key, digest, load_entry, store_entry
from tvm.driver.tuners import is_auto_scheduler_enabled
from tvm.ir import pickles
from tvm.ir.node import are_nodes_checked
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext
from tvm.ir.structural import structural_equal, structural_hash
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.traverse import post_order
from tvm.target import Target
from tvm.target.cpu import cpu_info
from tvm.topi import configuration

from .lowered_kernel import LoweredKernel

_PACKAGE = Path(__file__).parents[2]
_DIGEST_BYTES = 20
_LARGEST = 1 << 20  # bytes that are kept of one kernel
# operators of one kernel: pickling goes as deep as its expressions, on the C stack
_MOST_OPERATORS = 64


def find_kernel(func: Function, name: str, target: Target) -> LoweredKernel | None:
    """The kernel that an equal function had before."""
    key = _key(func, name, target)
    data = None if key is None else load_entry(key, "kernel")
    if key is None or data is None:
        return None
    try:
        source: Function
        kernel: LoweredKernel
        source, kernel = pickles.loads(data)
    except pickle.UnpicklingError:
        return None
    if not structural_equal(source, func):
        return None
    return replace(kernel, source=func, key=cache_key(key, digest(data)))


def is_kept(func: Function, name: str, target: Target) -> bool:
    """Whether a kernel is there, or cannot be."""
    key = _key(func, name, target)
    return key is None or load_entry(key, "kernel") is not None


def keep_kernel(kernel: LoweredKernel, target: Target) -> LoweredKernel:
    """Keep a kernel's loops for later processes; its schedule is not kept.

    Returns
    -------
    LoweredKernel
        The kernel, with a key if it was kept.
    """
    key = _key(kernel.source, kernel.name, target)
    if key is None:
        return kernel
    data = pickle.dumps((kernel.source, replace(kernel, schedule=None)), protocol=5)
    if len(data) > _LARGEST:
        return kernel
    store_entry(key, "kernel", data)
    return replace(kernel, key=cache_key(key, digest(data)))


def is_usable() -> bool:
    """Whether the package alone lowers, and nobody watches it."""
    watched = knobs.DUMP_IR.value, knobs.STOP_AFTER.value, knobs.DEBUG_INFO.value
    timed = knobs.TIME_PASSES.value or knobs.RULE_STATS.value
    context = PassContext.current()
    if not knobs.CACHE.value or any(watched) or timed or are_nodes_checked():
        return False
    if context.instruments or configuration.is_active() or is_auto_scheduler_enabled():
        return False
    return _is_plain(list(context.config.values()))


def _key(func: Function, name: str, target: Target) -> str | None:
    """What the kernel is kept under; None if it is too deep, or others take part in lowering it."""
    calls = [n for n in post_order(func.body) if isinstance(n, Call)]
    operators = [n.op for n in calls if isinstance(n.op, Op) and _is_own(n.op)]
    if len(operators) != len(calls) or len(operators) > _MOST_OPERATORS:
        return None
    context, cpu = PassContext.current(), cpu_info(target)
    return cache_key(
        f"{structural_hash(func):x}",
        name,
        " ".join([f"{op.name}:{op.fuse}" for op in operators]),
        str(target),
        repr((replace(cpu, features=frozenset()), sorted(cpu.features))),
        context.fingerprint(),
        _version_of_package(),
    )


def _is_own(op: Op) -> bool:
    """Whether an operator is computed and scheduled by code of this package."""
    functions = [op.compute, *(op.schedules or {}).values()]
    return op.strategy is None and all([_is_of_package(f) for f in functions if f is not None])


def _is_of_package(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module).partition(".")[0] == __name__.partition(".")[0]


def _is_plain(value: Any) -> bool:
    """Whether a value's text tells all of it."""
    if isinstance(value, (list, tuple)):
        return all([_is_plain(item) for item in value])
    if is_dataclass(value):
        return all([_is_plain(getattr(value, field.name)) for field in fields(value)])
    return value is None or isinstance(value, (bool, int, float, str))


@cache
def _version_of_package() -> str:
    """Changes with every change of the package's files and of Python."""
    digest = blake2b(repr(sys.version_info).encode(), digest_size=_DIGEST_BYTES)
    for path, size, modified in sorted(_sources(_PACKAGE)):
        digest.update(f"{path} {size} {modified}\n".encode())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[tuple[str, int, int]]:
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                status = os.stat(os.path.join(parent, name))
                yield os.path.join(parent, name), status.st_size, status.st_mtime_ns

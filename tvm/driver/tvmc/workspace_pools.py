"""Options that describe memory pools: `--workspace-pools sram --workspace-pools-targets sram:c`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.driver.tvmc.errors import TVMCException
from tvm.ir.memory_pools import PoolInfoProperties, WorkspaceMemoryPools, WorkspacePoolInfo
from tvm.target import Target

_FLAG = "--workspace-pools"
# the numbers of a pool, by the name of the option and of the property
_NUMBERS = {
    "size-hint-bytes": "the most bytes of a pool",
    "clock-frequency-hz": "the frequency of a pool's memory",
    "read-bandwidth-bytes-per-cycle": "bytes that a cycle reads from a pool",
    "write-bandwidth-bytes-per-cycle": "bytes that a cycle writes to a pool",
    "read-latency-cycles": "cycles before a pool's first byte is read",
    "write-latency-cycles": "cycles before a pool's first byte is written",
}


def generate_workspace_pools_args(parser: argparse.ArgumentParser) -> None:
    """Add the options of memory pools to a parser."""
    group = parser.add_argument_group(
        "memory pools", "memory for intermediate values, which the executor aot is given"
    )
    group.add_argument(_FLAG, metavar="POOL,...", help="the pools' names, the preferred ones first")
    group.add_argument(
        f"{_FLAG}-targets", action="append", metavar="POOL:TARGET,...",
        help="kinds of targets that reach a pool; each pool requires some",
    )  # fmt: skip
    for name, text in _NUMBERS.items():
        group.add_argument(
            f"{_FLAG}-{name}", action="append", metavar="POOL:N,...", help=text
        )  # fmt: skip
    group.add_argument(
        f"{_FLAG}-target-burst-bytes", action="append", metavar="POOL:TARGET:N,...",
        help="bytes that a target moves to or from a pool at once",
    )  # fmt: skip


def workspace_pools_recombobulate(
    parsed: argparse.Namespace, targets: Sequence[Target], extra_target: Any
) -> WorkspaceMemoryPools | None:
    """The pools that the arguments describe; None if they name none.

    Parameters
    ----------
    parsed : argparse.Namespace
        What was given on the command line.
    targets : list of Target
        The targets of the model.
    extra_target : list of dict
        Code generators beside the targets, whose names stand for targets too.
    """
    values = {name: getattr(parsed, f"workspace_pools_{name.replace('-', '_')}", None) or []
              for name in ("targets", "target-burst-bytes", *_NUMBERS)}  # fmt: skip
    names = [part.strip() for part in (parsed.workspace_pools or "").split(",") if part.strip()]
    reach = _targets_by_pool(values["targets"], names, _by_kind(targets, extra_target))
    numbers = {name: _numbers(name, values[name], names) for name in _NUMBERS}
    bursts = _bursts(values["target-burst-bytes"], names, _by_kind(targets, extra_target))
    if not names:
        return None
    if unreached := [pool for pool in names if pool not in reach]:
        raise TVMCException(
            f"the pool {unreached[0]!r} requires targets: {_FLAG}-targets {unreached[0]}:"
            + ",".join(_by_kind(targets, extra_target))
        )
    return WorkspaceMemoryPools(tuple([
        WorkspacePoolInfo(
            pool, reach[pool],
            PoolInfoProperties(
                **{name.replace("-", "_"): of_pool[pool]
                   for name, of_pool in numbers.items() if pool in of_pool},
                target_burst_bytes=bursts.get(pool),
            ),
        )
        for pool in names
    ]))  # fmt: skip


def _by_kind(targets: Sequence[Target], extra: Any) -> dict[str, Target]:
    found = {target.kind.name: target for target in targets}
    # the host of a target is its own kind's if no other target is
    for target in targets:
        if target.host is not None:
            found.setdefault(target.host.kind.name, target.host)
    for part in extra or ():
        name = part["name"] if isinstance(part, Mapping) else str(part)
        if targets:
            found.setdefault(name, targets[0])
    return found


def _checked_pool(option: str, text: str, pool: str, names: Sequence[str]) -> str:
    if pool not in names:
        raise TVMCException(
            f"{_FLAG}-{option} {text} names the pool {pool!r}, "
            f"{_FLAG} names {', '.join(names) or 'none'}"
        )
    return pool


def _checked_target(option: str, name: str, known: Mapping[str, Target]) -> Target:
    if name not in known:
        raise TVMCException(
            f"{_FLAG}-{option} names the target {name!r}, the model has {', '.join(known)}"
        )
    return known[name]


def _targets_by_pool(
    given: Sequence[str], names: Sequence[str], known: Mapping[str, Target]
) -> dict[str, list[Target]]:
    found: dict[str, list[Target]] = {}
    for text in given:
        pool, _, kinds = text.partition(":")
        # the last option about a pool decides
        found[_checked_pool("targets", text, pool, names)] = [
            _checked_target("targets", kind.strip(), known) for kind in kinds.split(",")
        ]
    return found


def _numbers(option: str, given: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    found = {}
    for text in [part for item in given for part in item.split(",")]:
        pool, _, number = text.partition(":")
        found[_checked_pool(option, text, pool, names)] = _integer(option, text, number)
    return found


def _bursts(
    given: Sequence[str], names: Sequence[str], known: Mapping[str, Target]
) -> dict[str, dict[Target, int]]:
    option = "target-burst-bytes"
    found: dict[str, dict[Target, int]] = {}
    for text in [part for item in given for part in item.split(",")]:
        pool, _, rest = text.partition(":")
        kind, _, number = rest.rpartition(":")
        of_pool = found.setdefault(_checked_pool(option, text, pool, names), {})
        of_pool[_checked_target(option, kind, known)] = _integer(option, text, number)
    return found


def _integer(option: str, text: str, number: str) -> int:
    try:
        return int(number)
    except ValueError:
        raise TVMCException(f"{_FLAG}-{option} requires POOL:NUMBER, got {text!r}") from None

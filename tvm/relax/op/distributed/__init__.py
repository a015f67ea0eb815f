"""Operators of distributed tensors, which this release does not have."""

from __future__ import annotations

from typing import Any

from tvm.error import OpNotImplemented


def _absent(name: str) -> Any:
    def reject(*_: Any, **__: Any) -> Any:
        raise OpNotImplemented(
            f"relax.op.distributed.{name} is not in this release; models run on one device"
        )

    reject.__name__ = name
    return reject


annotate_sharding = _absent("annotate_sharding")
redistribute = _absent("redistribute")
call_tir_local_view = _absent("call_tir_local_view")
redistribute_replica_to_shard = _absent("redistribute_replica_to_shard")

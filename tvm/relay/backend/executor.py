"""Which executor runs a compiled model."""

from __future__ import annotations

from tvm.relay.backend.options import Configured


class Executor(Configured):
    """`Executor("graph")` or `Executor("aot", {...})`."""

    what = "Executor"
    kinds = {
        "graph": {"link-params": bool},
        "aot": {
            "link-params": bool,
            "unpacked-api": bool,
            "interface-api": str,
            "workspace-byte-alignment": int,
            "constant-byte-alignment": int,
        },
    }

    defaults = {"graph": {"link-params": False}, "aot": {"link-params": True}}

    @staticmethod
    def list_registered() -> list[str]:
        """The executors there are."""
        return list(Executor.kinds)

    @staticmethod
    def list_registered_options(executor: str | Executor) -> dict[str, str]:
        """The options of one executor, with their types."""
        return Executor.options_of(executor)

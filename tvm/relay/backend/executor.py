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

    @staticmethod
    def list_registered() -> list[str]:
        """The executors there are."""
        return list(Executor.kinds)

    @staticmethod
    def list_registered_options(executor: str) -> dict[str, str]:
        """The options of one executor, with their types."""
        return {name: kind.__name__ for name, kind in Executor(executor).kinds[executor].items()}

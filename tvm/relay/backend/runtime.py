"""Which runtime a compiled model needs."""

from __future__ import annotations

from tvm.relay.backend.options import Configured


class Runtime(Configured):
    """`Runtime("cpp")`, or `Runtime("crt", {...})` for bare C."""

    what = "Runtime"
    kinds = {"cpp": {"system-lib": bool, "system-lib-prefix": str}, "crt": {"system-lib": bool}}

    @staticmethod
    def list_registered() -> list[str]:
        """The runtimes there are."""
        return list(Runtime.kinds)

    @staticmethod
    def list_registered_options(runtime: str | Runtime) -> dict[str, str]:
        """The options of one runtime, with their types."""
        return Runtime.options_of(runtime)

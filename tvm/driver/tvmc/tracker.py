"""`--rpc-tracker HOST:PORT`."""

from __future__ import annotations

from tvm.driver.tvmc.errors import TVMCException

_PORT = 9090


def tracker_host_port_from_cli(rpc_tracker_str: str | None) -> tuple[str | None, int | None]:
    """The host and the port of a tracker; both None if there is no text.

    Parameters
    ----------
    rpc_tracker_str : str
        "HOST:PORT", or "HOST" for the port 9090.
    """
    if not rpc_tracker_str:
        return None, None
    host, _, port = rpc_tracker_str.partition(":")
    if not host or (port and not port.isdigit()):
        raise TVMCException(f"--rpc-tracker requires HOST:PORT, got {rpc_tracker_str!r}")
    return host, int(port or _PORT)

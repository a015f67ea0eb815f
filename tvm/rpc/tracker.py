"""The tracker: servers offer themselves, clients ask for a machine of some kind and wait until one is free."""

from __future__ import annotations

from tvm.rpc.base import LOOPBACK, bind_address
from tvm.rpc.process import OwnService, Service
from tvm.rpc.scheduler import PriorityScheduler, Scheduler

__all__ = ["PriorityScheduler", "Scheduler", "Tracker"]


class Tracker(OwnService):
    """A tracker in a process of its own.

    Parameters
    ----------
    host : str
        The address to listen on. One that other machines reach needs ``key_file``, or
        ``insecure_allow_any``.
    port, port_end : int
        The first free port of this range.
    silent : bool
        Accepted for classic programs: it says nothing.
    reuse_addr : bool
        Whether a port may be used again right after another tracker has ended.
    timeout : float, optional
        Accepted for classic programs: peers that stall are dropped in any case.
    key_file : str, optional
        A file with a secret that servers and clients prove to know.
    insecure_allow_any : bool
        Whether everybody who reaches it may offer and ask for servers.

    Attributes
    ----------
    host : str
        The address.
    port : int
        The port.
    """

    def __init__(
        self,
        host: str = LOOPBACK,
        port: int = 9190,
        port_end: int = 9199,
        silent: bool = False,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        key_file: str | None = None,
        insecure_allow_any: bool = False,
    ) -> None:
        self.host = bind_address("Tracker", host, key_file, insecure_allow_any)
        self.proc = Service(
            "tvm.rpc.tracker_server:listen",
            self.host,
            port,
            max(port_end, port + 1),
            key_file,
            reuse_addr,
        )
        self.port = self.proc.port

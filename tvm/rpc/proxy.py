"""The proxy: servers that nobody can reach connect to it, and clients are connected with them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from tvm.rpc.base import LOOPBACK, bind_address
from tvm.rpc.process import OwnService, Service


@dataclass(frozen=True)
class ProxyOptions:
    """Where a proxy listens, and for how many seconds peers wait for each other."""

    host: str = LOOPBACK
    port: int = 9091
    port_end: int = 9199
    web_port: int = 0
    timeout_client: float = 600
    timeout_server: float = 600
    tracker_addr: tuple[str, int] | None = None
    key_file: str | None = None
    reuse_addr: bool = True


class Proxy(OwnService):
    """A proxy in a process of its own.

    Parameters
    ----------
    host : str
        The address to listen on. One that other machines reach needs ``key_file``, or
        ``insecure_allow_any``.
    port, port_end : int
        The first free port of this range.
    web_port : int
        The port of peers that speak over a WebSocket, at ``/ws``; 0 for none.
    timeout_client, timeout_server : float
        For how many seconds each waits for the other.
    tracker_addr : tuple of str and int, optional
        Host and port of a tracker that gives out the servers.
    index_page, resource_files :
        The pages of classic TVM's server in browsers, which is not in this release; only None.
    key_file : str, optional
        A file with a secret that clients and servers prove to know.
    insecure_allow_any : bool
        Whether everybody who reaches it may connect.

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
        port: int = 9091,
        port_end: int = 9199,
        web_port: int = 0,
        timeout_client: float = 600,
        timeout_server: float = 600,
        tracker_addr: tuple[str, int] | None = None,
        index_page: None = None,
        resource_files: None = None,
        *,
        key_file: str | None = None,
        insecure_allow_any: bool = False,
    ) -> None:
        if index_page or resource_files:
            raise ValueError(
                "a proxy serves no pages here: leave index_page and resource_files out"
            )
        self.host = bind_address("Proxy", host, key_file, insecure_allow_any)
        options = ProxyOptions(
            self.host, port, port_end, web_port, timeout_client, timeout_server, tracker_addr,
            key_file,
        )  # fmt: skip
        self.proc = Service("tvm.rpc.proxy_server:listen", options)
        self.port = self.proc.port


def websocket_proxy_server(url: str, key: str = "") -> None:
    """Serve clients of a proxy from this process, one after the other, over its WebSocket.

    Parameters
    ----------
    url : str
        ``ws://host:port/ws``.
    key : str
        The kind of machine.
    """
    # the event loop of asyncio takes longer to import than all that clients need
    importlib.import_module("tvm.rpc.proxy_server").serve_websocket(url, key)

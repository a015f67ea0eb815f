"""Functions, modules and devices of other machines, seen as if they were here.

    server = rpc.Server(key="board")                           # there; or the program tvm_rpc
    remote = rpc.connect("127.0.0.1", server.port, key="board")  # here
    remote.upload("lib.so")
    lib = remote.load_module("lib.so")
    a = tvm.nd.array(values, remote.cpu())
    lib["add_one"](a)                                          # runs there

`docs/rpc.md` tells how machines are found, who may connect, and what goes over the wire.
"""

from .client import (
    LocalSession,
    PopenSession,
    RPCSession,
    TrackerSession,
    connect,
    connect_tracker,
)
from .minrpc import with_minrpc
from .proxy import Proxy
from .server import Server
from .tracker import Tracker

__all__ = [
    "LocalSession",
    "PopenSession",
    "Proxy",
    "RPCSession",
    "Server",
    "Tracker",
    "TrackerSession",
    "connect",
    "connect_tracker",
    "with_minrpc",
]

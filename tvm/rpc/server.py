"""Servers: what they have is used by clients, each in a process of its own."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm._ffi.registry import get_global_func, register_func
from tvm.contrib import cc, utils
from tvm.contrib import tar as _tar
from tvm.rpc import testing as _testing  # noqa: F401  # functions that every server has
from tvm.rpc.base import LOOPBACK, bind_address
from tvm.rpc.process import OwnService, Service
from tvm.runtime.module import Module, load_module


def _load_module(path: str) -> Module:
    """A library of the session's folder; archives of objects are linked."""
    return load_module(get_global_func("tvm.rpc.server.workpath")(path))


def _download_linked_module(path: str) -> bytearray:
    """A library of the session's folder as bytes; archives and objects are linked first."""
    full = get_global_func("tvm.rpc.server.workpath")(path)
    if not full.endswith((".o", ".tar")):
        return bytearray(get_global_func("tvm.rpc.server.download")(path))
    with utils.kept_folder() as folder:
        objects = [full]
        if full.endswith(".tar"):
            (folder / "objects").mkdir()
            _tar.untar(full, str(folder / "objects"))
            objects = sorted(str(each) for each in (folder / "objects").iterdir())
        library = folder / "linked.so"
        cc.create_shared(str(library), objects)
        return bytearray(library.read_bytes())


class SessionFolder:
    """The folder of a session in this process, removed at its end; ``path`` is where it is."""

    def __init__(self, path: str | None = None) -> None:
        self._temporary = None if path else tempfile.TemporaryDirectory(prefix="tvm_rpc_")
        self.path = path or (self._temporary.name if self._temporary else "")
        self.libs: list[ctypes.CDLL] = []
        get_global_func("rpc.UseSessionFolder")(self.path)

    def relpath(self, name: str) -> str:
        """The path of a file there."""
        return str(Path(self.path) / name)


def _server_env(load_library: Sequence[str], work_path: str | None = None) -> SessionFolder:
    """Let this process serve: a folder for files, functions that link, more libraries."""
    folder = SessionFolder(work_path)
    register_func("tvm.rpc.server.load_module", _load_module, override=True)
    register_func("tvm.rpc.server.download_linked_module", _download_linked_module, override=True)
    folder.libs = [ctypes.CDLL(path, ctypes.RTLD_GLOBAL) for path in load_library]
    return folder


def _as_libraries(load_library: str | Sequence[str] | None) -> list[str]:
    if load_library is None:
        return []
    names = load_library.split(":") if isinstance(load_library, str) else list(load_library)
    return [str(Path(name).resolve()) if Path(name).exists() else name for name in names]


def listen(
    options: dict[str, Any],
    load_library: Sequence[str],
    initialize: Callable[[], Any] | None,
    *,
    control: int = -1,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve in this process, until it is interrupted.

    Parameters
    ----------
    options : dict
        The native server's options.
    load_library : list of str
        Libraries with more functions.
    initialize : function, optional
        Called before anybody is served.
    control : int
        A descriptor at whose end the server ends.
    ready : function, optional
        Called with the port.
    """
    if initialize is not None:
        initialize()
    folder = _server_env(load_library)
    get_global_func("rpc.Listen")(
        json.dumps({**options, "control": control}), os.fork, ready, None, _flush
    )
    del folder


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


class Server(OwnService):
    """A server in a process of its own; each client is served by a process that is forked from it.

    Parameters
    ----------
    host : str
        The address to listen on, or that of a proxy. Addresses that other machines reach need
        ``key_file``, or ``insecure_allow_any``.
    port, port_end : int
        The first free port of this range; for a proxy, its port.
    is_proxy : bool
        Whether host and port are those of a proxy, to which the server connects.
    tracker_addr : tuple of str and int, optional
        Host and port of the tracker that gives out the server.
    key : str
        The kind of machine; clients say it.
    load_library : str or list of str, optional
        Libraries with more functions; several in one text are separated by colons.
    custom_addr : str, optional
        The address that the tracker tells clients.
    silent : bool
        Whether it says nothing about sessions.
    no_fork : bool
        Accepted for classic programs: the server never is a fork of the process that makes it.
    server_init_callback : function, optional
        Called in the server's process before anybody is served, to register functions.
    reuse_addr : bool
        Whether a port may be used again right after another server has ended.
    timeout : float, optional
        How many seconds a client may stall in the middle of a message.
    key_file : str, optional
        A file with a secret that clients prove to know.
    insecure_allow_any : bool
        Whether everybody who reaches the server may run code on this machine.
    session_timeout : float, optional
        The most seconds that a session may take.
    max_message, max_memory : int, optional
        The most bytes of a message, and of the arrays of a session.

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
        is_proxy: bool = False,
        tracker_addr: tuple[str, int] | None = None,
        key: str = "",
        load_library: str | Sequence[str] | None = None,
        custom_addr: str | None = None,
        silent: bool = False,
        no_fork: bool = False,
        server_init_callback: Callable[[], Any] | None = None,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        key_file: str | None = None,
        insecure_allow_any: bool = False,
        session_timeout: float | None = None,
        max_message: int | None = None,
        max_memory: int | None = None,
    ) -> None:
        self.host = host if is_proxy else bind_address("Server", host, key_file, insecure_allow_any)
        self.custom_addr = custom_addr
        options = server_options(
            host=self.host, port=port, port_end=port_end, is_proxy=is_proxy,
            tracker_addr=tracker_addr, key=key, custom_addr=custom_addr, reuse_addr=reuse_addr,
            stall_timeout=timeout, key_file=key_file, insecure_allow_any=insecure_allow_any,
            session_timeout=session_timeout, max_message=max_message, max_memory=max_memory,
            silent=True,
        )  # fmt: skip
        self.is_proxy = is_proxy
        self.proc = Service(listen, options, _as_libraries(load_library), server_init_callback)
        self.port = self.proc.port


def server_options(tracker_addr: tuple[str, int] | None = None, **options: Any) -> dict[str, Any]:
    """The native server's options: those that were given."""
    if tracker_addr is not None:
        options["tracker_host"], options["tracker_port"] = tracker_addr[0], int(tracker_addr[1])
    given = {name: value for name, value in options.items() if value is not None}
    return {k: int(v) if isinstance(v, bool) else v for k, v in given.items()}

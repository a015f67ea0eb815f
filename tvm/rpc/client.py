"""Clients: sessions with servers, and trackers that find them."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm._ffi.registry import get_global_func, register_object
from tvm._ffi.runtime_ctypes import RPC_SESS_MASK, Device
from tvm.error import TVMError
from tvm.rpc import base
from tvm.rpc.server import _server_env
from tvm.runtime.device import device as find_device
from tvm.runtime.module import Module
from tvm.runtime.object import Object
from tvm.runtime.packed_func import PackedFunc


@register_object("runtime.RPCObjectRef")
class RPCObjectRef(Object):
    """An object that another process has; it can be given to functions of its session."""

    @property
    def type_key(self) -> str:
        """The kind of this object."""
        return "runtime.RPCObjectRef"

    def __repr__(self) -> str:
        return f"RPCObjectRef({self.handle.value or 0:#x})"


class RPCSession:
    """What another process has, made by :func:`connect` and its like."""

    def __init__(self, sess: Module) -> None:
        self._sess = sess
        self._tbl_index = int(get_global_func("rpc.SessTableIndex")(sess))
        self._remote_funcs: dict[str, PackedFunc] = {}

    def _remote(self, name: str) -> PackedFunc:
        if name not in self._remote_funcs:
            self._remote_funcs[name] = self.get_function(f"tvm.rpc.server.{name}")
        return self._remote_funcs[name]

    def system_lib(self) -> Module:
        """The functions that the server's program was linked with."""
        module: Module = self.get_function("runtime.SystemLib")()
        return module

    def get_function(self, name: str) -> PackedFunc:
        """A global function of the server.

        Parameters
        ----------
        name : str
            Its name.
        """
        return self._sess.get_function(name)

    def device(self, dev_type: str | int, dev_id: int = 0) -> Device:
        """A device of the server.

        Parameters
        ----------
        dev_type : str or int
            Its kind.
        dev_id : int
            Its number.
        """
        local = find_device(dev_type, dev_id)
        return Device(local.device_type + (self._tbl_index + 1) * RPC_SESS_MASK, dev_id)

    def upload(
        self, data: str | bytes | bytearray | os.PathLike[str], target: str | None = None
    ) -> None:
        """Send a file to the session's folder, which is removed at its end.

        Parameters
        ----------
        data : str or bytes
            The path of a file of this machine, or bytes.
        target : str, optional
            Its path in the session's folder; needed for bytes. A file keeps its name by default.
        """
        if isinstance(data, (bytes, bytearray)):
            if not target:
                raise ValueError("upload of bytes requires target, the file's name there")
            content: bytes | bytearray = data
        else:
            content = Path(data).read_bytes()
            target = target or Path(data).name
        self._remote("upload")(target, content)

    def download(self, path: str) -> bytearray:
        """The bytes of a file of the session's folder.

        Parameters
        ----------
        path : str
            Its path there.
        """
        return bytearray(self._remote("download")(path))

    def remove(self, path: str) -> None:
        """Remove a file of the session's folder.

        Parameters
        ----------
        path : str
            Its path there.
        """
        self._remote("remove")(path)

    def listdir(self, path: str) -> str:
        """The names of the files in a folder within the session's folder, separated by commas.

        Parameters
        ----------
        path : str
            The folder; ``"."`` for that of the session.
        """
        return str(self._remote("listdir")(path))

    def load_module(self, path: str) -> Module:
        """A library that was uploaded, loaded there.

        Parameters
        ----------
        path : str
            Its path in the session's folder; archives of objects are linked.
        """
        module: Module = get_global_func("rpc.LoadRemoteModule")(self._sess, str(path))
        return module

    def download_linked_module(self, path: str) -> bytearray:
        """The bytes of an uploaded archive of objects, linked there.

        Parameters
        ----------
        path : str
            Its path in the session's folder.
        """
        return bytearray(self._remote("download_linked_module")(path))

    def cpu(self, dev_id: int = 0) -> Device:
        """A processor of the server."""
        return self.device("cpu", dev_id)

    def cuda(self, dev_id: int = 0) -> Device:
        """A device of CUDA of the server."""
        return self.device("cuda", dev_id)

    def cl(self, dev_id: int = 0) -> Device:
        """A device of OpenCL of the server."""
        return self.device("opencl", dev_id)

    def vulkan(self, dev_id: int = 0) -> Device:
        """A device of Vulkan of the server."""
        return self.device("vulkan", dev_id)

    def metal(self, dev_id: int = 0) -> Device:
        """A device of Metal of the server."""
        return self.device("metal", dev_id)

    def rocm(self, dev_id: int = 0) -> Device:
        """A device of ROCm of the server."""
        return self.device("rocm", dev_id)

    def ext_dev(self, dev_id: int = 0) -> Device:
        """An extension device of the server."""
        return self.device("ext_dev", dev_id)

    def hexagon(self, dev_id: int = 0) -> Device:
        """A Hexagon processor of the server."""
        return self.device("hexagon", dev_id)

    def webgpu(self, dev_id: int = 0) -> Device:
        """A device of WebGPU of the server."""
        return self.device("webgpu", dev_id)


class LocalSession(RPCSession):
    """This process, behind the interface of a session."""

    def __init__(self) -> None:
        self._folder = _server_env([])
        super().__init__(get_global_func("rpc.LocalSession")())

    def load_module(self, path: str) -> Module:
        """A library that was uploaded, or any of this machine by its absolute path.

        Parameters
        ----------
        path : str
            Where it is.
        """
        if not Path(path).is_absolute():
            return super().load_module(path)
        self.upload(path)
        return super().load_module(Path(path).name)


class PopenSession(RPCSession):
    """A program that serves over pipes, such as :func:`with_minrpc` links.

    Parameters
    ----------
    binary : str or bytes
        The path of the program, or the program.
    """

    def __init__(self, binary: str | bytes | bytearray) -> None:
        self._folder = None
        if isinstance(binary, (bytes, bytearray)):
            self._folder = _server_env([])
        super().__init__(get_global_func("rpc.PopenSession")(binary))


class TrackerSession:
    """A connection to a tracker.

    Parameters
    ----------
    addr : tuple of str and int
        Host and port.
    key_file : str, optional
        The file of the secret that the tracker and its servers share.
    """

    def __init__(self, addr: tuple[str, int], key_file: str | None = None) -> None:
        self._addr = addr
        self._key_file = key_file
        self._sock: socket.socket | None = None
        self._connect()

    def __del__(self) -> None:
        self.close()

    def _connect(self) -> socket.socket:
        sock = base.connect_with_retry(self._addr)
        try:
            sock.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
            (magic,) = struct.unpack("<i", base.recvall(sock, 4))
            if magic != base.RPC_TRACKER_MAGIC:
                raise RuntimeError(f"{self._addr} is not RPC Tracker")
            if (secret := base.read_secret(self._key_file)) is not None:
                _prove_to_tracker(sock, secret)
        except BaseException:
            sock.close()
            raise
        self._sock = sock
        return sock

    def close(self) -> None:
        """End the connection."""
        if getattr(self, "_sock", None) is not None:
            assert self._sock is not None
            self._sock.close()
            self._sock = None

    def _ask(self, *message: Any) -> Any:
        sock = self._sock or self._connect()
        base.sendjson(sock, list(message))
        answer = base.recvjson(sock)
        if not isinstance(answer, list) or answer[0] != base.TrackerCode.SUCCESS:
            raise RuntimeError(f"the tracker {self._addr[0]}:{self._addr[1]} answers {answer}")
        return answer[1]

    def summary(self) -> dict[str, Any]:
        """Its servers (``server_info``), and for each key how many are free and how many clients wait."""
        found: dict[str, Any] = self._ask(base.TrackerCode.SUMMARY)
        return found

    def text_summary(self) -> str:
        """The summary as a table."""
        data = self.summary()
        line = "-" * 30
        lines = ["Server List", line, f"{'server-address':24s} key", line]
        servers = [(f"{s['addr'][0]}:{s['addr'][1]}", s["key"]) for s in data["server_info"]]
        lines += [f"{address:>24s} {key}" for address, key in sorted(servers)]
        lines += [line, "", "Queue Status", line]
        queues = data["queue_info"]
        width = max([len("key"), *[len(key) for key in queues]])
        lines += [f"{'key':{width}s}  total  free  pending", line]
        counts: dict[str, int] = {}
        for _, key in servers:
            counts[key] = counts.get(key, 0) + 1
        for key, queue in queues.items():
            total = counts.get(f"server:{key}", 0)
            lines.append(f"{key:{width}s}  {total:<5d}  {queue['free']:<4d}  {queue['pending']}")
        return "\n".join([*lines, line])

    def request(
        self,
        key: str,
        priority: int = 1,
        session_timeout: float = 0,
        max_retry: int = 5,
        session_constructor_args: Sequence[Any] | None = None,
    ) -> RPCSession:
        """A session with a server of that key; this waits until one is free.

        Parameters
        ----------
        key : str
            The kind of machine.
        priority : int
            Clients of a higher one come first.
        session_timeout : float
            After how many seconds the session ends, 0 for never.
        max_retry : int
            How often to ask again if a server has gone.
        session_constructor_args : list, optional
            As of :func:`connect`.
        """
        last_error: Exception | None = None
        for _ in range(max_retry):
            try:
                url, port, match_key = self._ask(base.TrackerCode.REQUEST, key, "", priority)
                return connect(
                    url, port, match_key, session_timeout, session_constructor_args,
                    key_file=self._key_file,
                )  # fmt: skip
            except OSError as error:
                self.close()
                last_error = error
            except TVMError as error:
                last_error = error
        raise RuntimeError(
            f"cannot get a server for the key {key!r} in {max_retry} tries: {last_error}"
        ) from last_error

    def request_and_run(
        self,
        key: str,
        func: Callable[[RPCSession], Any],
        priority: int = 1,
        session_timeout: float = 0,
        max_retry: int = 2,
    ) -> Any:
        """Call a function with a session; if that fails, again with another one.

        Parameters
        ----------
        key : str
            The kind of machine.
        func : function
            Takes the session.
        priority, session_timeout :
            As of :meth:`request`.
        max_retry : int
            How often to try.
        """
        last_error: Exception | None = None
        for _ in range(max_retry):
            try:
                return func(self.request(key, priority, session_timeout))
            except TVMError as error:
                last_error = error
        raise RuntimeError(
            f"the function on {key!r} has failed {max_retry} times: {last_error}"
        ) from last_error


def _prove_to_tracker(sock: socket.socket, secret: bytes) -> None:
    nonce = os.urandom(base.NONCE_BYTES).hex()
    base.sendjson(sock, [base.TrackerCode.AUTHENTICATE, nonce])
    answer = base.recvjson(sock)
    if not isinstance(answer, list) or len(answer) != 3:
        raise RuntimeError("the tracker asks for no secret, and may be anybody")
    _, other, proof = answer
    if proof != base.digest(secret, f"tracker{nonce}{other}".encode()).hex():
        raise RuntimeError("the tracker has another secret")
    own = base.digest(secret, f"peer{other}{nonce}".encode()).hex()
    base.sendjson(sock, [base.TrackerCode.AUTHENTICATE, own])
    if base.recvjson(sock) != base.TrackerCode.SUCCESS:
        raise RuntimeError("the tracker has another secret")


def connect(
    url: str,
    port: int,
    key: str = "",
    session_timeout: float = 0,
    session_constructor_args: Sequence[Any] | None = None,
    enable_logging: bool = False,
    *,
    key_file: str | None = None,
) -> RPCSession:
    """A session with a server, or through a proxy.

    Parameters
    ----------
    url : str
        Its address.
    port : int
        Its port.
    key : str
        The key that it was started with.
    session_timeout : float
        After how many seconds the session ends, 0 for never.
    session_constructor_args : list, optional
        A function of the server by which it makes the session, and its arguments:
        ``["rpc.Connect", host, port, key, False]`` goes on to another server.
    enable_logging : bool
        Whether each message is told on stderr.
    key_file : str, optional
        The file of the secret that the server was given.

    Examples
    --------
    The session of a machine behind another one:

    >>> remote = rpc.connect(gateway, 9090, "gate", session_constructor_args=[
    ...     "rpc.Connect", "10.0.0.2", 9090, "board", False])
    """
    if session_timeout:
        key += f" -timeout={session_timeout}"
    constructor = session_constructor_args or []
    if not isinstance(constructor, (list, tuple)):
        raise TypeError(
            f"session_constructor_args is a list, got {type(session_constructor_args).__name__}"
        )
    address = str(url), int(port), key, bool(enable_logging)
    if key_file is None:
        return RPCSession(get_global_func("rpc.Connect")(*address, *constructor))
    start = get_global_func("rpc.ConnectWithSecret")
    return RPCSession(start(*address, str(key_file), *constructor))


def connect_tracker(url: str, port: int, *, key_file: str | None = None) -> TrackerSession:
    """A connection to a tracker.

    Parameters
    ----------
    url : str
        Its address.
    port : int
        Its port.
    key_file : str, optional
        The file of the secret that the tracker and its servers share.
    """
    return TrackerSession((url, int(port)), key_file)

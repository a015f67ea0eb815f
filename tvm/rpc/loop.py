"""The event loop of trackers and proxies: connections of which each is a task, and the end of them all."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_MAX_CONNECTIONS = 4096


def listening_socket(host: str, ports: Iterable[int], reuse_addr: bool = True) -> socket.socket:
    """A socket that listens on the first free port."""
    last_error: OSError | None = None
    for port in ports:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        if reuse_addr:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(128)
            return sock
        except OSError as error:
            sock.close()
            last_error = error
    raise ValueError(f"no port of {host} is free in {ports}: {last_error}")


async def serve_connections(
    listeners: Sequence[tuple[Handler, socket.socket]],
    control: int,
    ready: Callable[[int], None] | None,
) -> None:
    """Run each handler for the connections to its socket, until ``control`` can be read or a signal comes.

    ``ready`` is called with the port of the first socket.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    if control >= 0:
        loop.add_reader(control, ended.set)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    tasks: set[asyncio.Task[None]] = set()
    servers = [
        await asyncio.start_server(_guarded(handle, tasks), sock=sock) for handle, sock in listeners
    ]
    if ready is not None:
        ready(listeners[0][1].getsockname()[1])
    await ended.wait()
    for server in servers:
        server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _guarded(handle: Handler, tasks: set[asyncio.Task[None]]) -> Handler:
    """The handler for peers that go away or stall as they like; its tasks are in the set meanwhile."""

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(tasks) >= _MAX_CONNECTIONS:
            writer.close()
            return
        tasks.add(task)
        try:
            await handle(reader, writer)
        except (OSError, EOFError, asyncio.TimeoutError, asyncio.CancelledError):
            pass
        except asyncio.LimitOverrunError:  # a line of HTTP that does not end
            pass
        finally:
            tasks.discard(task)
            writer.close()

    return run

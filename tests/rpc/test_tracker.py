"""Trackers and proxies: finding servers, waiting for them, losing them."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import tvm
from tvm import rpc
from tvm.rpc import base
from tvm.rpc.base import TrackerCode
from tvm.rpc.proxy import websocket_proxy_server


@pytest.fixture
def tracker() -> Iterator[rpc.Tracker]:
    with rpc.Tracker(port=0) as tracker:
        yield tracker


def _server(tracker: rpc.Tracker, key: str, **options: object) -> rpc.Server:
    return rpc.Server(port=0, key=key, tracker_addr=("127.0.0.1", tracker.port), **options)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("key", ["board", "127.0.0.1:5555"])
def test_servers_come_and_go(tracker: rpc.Tracker, key: str) -> None:
    client = rpc.connect_tracker("127.0.0.1", tracker.port)

    def free() -> int:
        return client.summary()["queue_info"].get(key, {"free": 0})["free"]

    def addresses() -> list[list[object]]:
        return [server["addr"] for server in client.summary()["server_info"]]

    first, second = _server(tracker, key), _server(tracker, key, custom_addr="test_addr")
    assert free() == 2
    assert ["127.0.0.1", first.port] in addresses() and ["test_addr", second.port] in addresses()
    assert key in client.text_summary()
    second.terminate()
    _until(lambda: free() == 1)
    remote = client.request(key)
    assert remote.get_function("rpc.test.addone")(10) == 11
    assert free() == 0
    del remote
    _until(lambda: free() == 1)
    first.terminate()
    _until(lambda: free() == 0 and not addresses())


def test_clients_wait_by_priority(tracker: rpc.Tracker) -> None:
    client = rpc.connect_tracker("127.0.0.1", tracker.port)
    with _server(tracker, "k"):
        remote = client.request("k")
        order: list[int] = []

        def wait(priority: int) -> None:
            session = rpc.connect_tracker("127.0.0.1", tracker.port)
            found = session.request("k", priority=priority)
            order.append(priority)
            assert found.get_function("rpc.test.addone")(1) == 2

        threads = [threading.Thread(target=wait, args=(priority,)) for priority in (1, 9)]
        for count, thread in enumerate(threads, 1):
            thread.start()
            _until(lambda n=count: client.summary()["queue_info"]["k"]["pending"] == n)
        del remote
        for thread in threads:
            thread.join(30)
    assert order == [9, 1]


def test_request_and_run_tries_again(tracker: rpc.Tracker) -> None:
    client = rpc.connect_tracker("127.0.0.1", tracker.port)
    with _server(tracker, "k"):
        calls: list[int] = []

        def run(remote: rpc.RPCSession) -> int:
            calls.append(1)
            if len(calls) == 1:
                remote.get_function("rpc.test.kill_self")(int(signal.SIGKILL))
            return remote.get_function("rpc.test.addone")(1)

        assert client.request_and_run("k", run) == 2 and len(calls) == 2


def test_a_tracker_survives_what_peers_say(tracker: rpc.Tracker) -> None:
    client = rpc.connect_tracker("127.0.0.1", tracker.port)
    magic = struct.pack("<i", base.RPC_TRACKER_MAGIC)
    bad = [b"", b"\0" * 8, magic, magic + b"\xff" * 4, magic + struct.pack("<i", 1 << 30)]
    texts = ["", "{", "[]", "[3]", "[99, 1]", "[3, 1, 2, 3]", '[4, "k"]', "[5, 7]", '["x"]', "[[[["]
    bad += [magic + base.pack_text(text) for text in texts]
    for content in bad:
        with socket.create_connection(("127.0.0.1", tracker.port)) as sock:
            sock.sendall(content)
    with socket.create_connection(("127.0.0.1", tracker.port)) as sock:
        sock.sendall(magic)
        base.recvall(sock, 4)
        base.sendjson(sock, [TrackerCode.PUT, "k", [1, "stale"], None])
        assert base.recvjson(sock) == TrackerCode.SUCCESS
        assert client.summary()["queue_info"]["k"] == {"free": 1, "pending": 0}
    _until(lambda: client.summary()["queue_info"]["k"]["free"] == 0)


def test_a_killed_server_is_free_no_more(tracker: rpc.Tracker) -> None:
    client = rpc.connect_tracker("127.0.0.1", tracker.port)
    server = _server(tracker, "k")
    assert server.proc is not None
    os.kill(server.proc.pid, signal.SIGKILL)
    _until(lambda: client.summary()["queue_info"]["k"]["free"] == 0)


def test_a_server_finds_its_tracker_again() -> None:
    first = rpc.Tracker(port=0)
    port = first.port
    with _server(first, "k"):
        first.terminate()
        with rpc.Tracker(port=port, port_end=port + 1):
            client = rpc.connect_tracker("127.0.0.1", port)
            _until(lambda: client.summary()["queue_info"].get("k", {}).get("free") == 1)
            assert client.request("k").get_function("rpc.test.addone")(1) == 2


def test_a_proxy_connects_both_sides() -> None:
    with rpc.Proxy(port=0) as proxy:
        options = {"is_proxy": True, "key": "x1"}
        with rpc.Server("127.0.0.1", proxy.port, **options):
            remote = rpc.connect("127.0.0.1", proxy.port, "x1")
            assert remote.get_function("rpc.test.addone")(10) == 11
            remote.upload(bytes(5_000_000), "x")
            assert len(remote.download("x")) == 5_000_000
            del remote
            remote = rpc.connect("127.0.0.1", proxy.port, "x1", session_timeout=0.5)
            add = remote.get_function("rpc.test.addone")
            time.sleep(1.2)
            with pytest.raises(tvm.error.RPCSessionTimeoutError):
                add(1)
    refused = pytest.raises(tvm.error.RPCError, match="no server for the key 'none'")
    with rpc.Proxy(port=0, timeout_client=0.2) as proxy, refused:
        rpc.connect("127.0.0.1", proxy.port, "none")


def test_a_proxy_offers_its_servers_at_a_tracker(tracker: rpc.Tracker) -> None:
    client = rpc.connect_tracker("127.0.0.1", tracker.port)
    with rpc.Proxy(port=0, tracker_addr=("127.0.0.1", tracker.port)) as proxy:
        options = {"is_proxy": True, "key": "k"}
        first = rpc.Server("127.0.0.1", proxy.port, **options)
        with rpc.Server("127.0.0.1", proxy.port, **options):
            _until(lambda: client.summary()["queue_info"].get("k", {}).get("free") == 2)
            remotes = [client.request("k", session_timeout=30) for _ in range(2)]
            assert [r.get_function("rpc.test.addone")(1) for r in remotes] == [2, 2]
            del remotes
            _until(lambda: client.summary()["queue_info"]["k"]["free"] == 2)
            first.terminate()
            _until(lambda: client.summary()["queue_info"]["k"]["free"] == 1)


def test_servers_behind_a_web_socket() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        web_port = sock.getsockname()[1]
    with rpc.Proxy(port=0, web_port=web_port) as proxy:
        url = f"ws://127.0.0.1:{web_port}/ws"
        text = f"from {websocket_proxy_server.__module__} import *\nwebsocket_proxy_server({url!r}, 'w')"
        server = subprocess.Popen(
            [sys.executable, "-c", text.replace("*", "websocket_proxy_server")]
        )
        try:
            remote = rpc.connect("127.0.0.1", proxy.port, "w")
            echo = remote.get_function("testing.echo")
            assert echo("xyz") == "xyz" and len(echo("x" * 100_000)) == 100_000
        finally:
            server.kill()
            server.wait()

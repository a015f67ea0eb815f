"""Who is let in, and what becomes of sessions that misbehave."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import rpc
from tvm.rpc import base

PROGRAM = Path(tvm.__file__).parent / "tvm_rpc"


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    path = tmp_path / "key"
    path.write_text("a secret of at least sixteen bytes\n")
    path.chmod(0o600)
    return str(path)


def _answers(remote: rpc.RPCSession) -> bool:
    return remote.get_function("testing.echo")(1) == 1


def test_open_addresses_need_a_secret_or_consent() -> None:
    with pytest.raises(ValueError, match="key_file"):
        rpc.Server("192.0.2.1", port=0)
    with pytest.warns(UserWarning, match="127.0.0.1 only"), rpc.Server("0.0.0.0", port=0) as server:
        assert server.host == "127.0.0.1"
    for command in (
        [sys.executable, "-m", "tvm.exec.rpc_server", "--host=0.0.0.0"],
        [str(PROGRAM), "server", "--host=0.0.0.0"],
    ):
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert found.returncode != 0 and "--insecure-allow-any" in found.stderr


def test_both_sides_prove_their_secret(key_file: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("another secret that is long enough")
    other.chmod(0o600)
    with rpc.Server("0.0.0.0", port=0, key="k", key_file=key_file) as server:
        port = server.port
        assert _answers(rpc.connect("127.0.0.1", port, "k", key_file=key_file))
        with pytest.raises(tvm.error.RPCError, match="another secret"):
            rpc.connect("127.0.0.1", port, "k", key_file=str(other))
        # as a classic client does, which is told why
        with pytest.raises(tvm.error.RPCError, match="requires a secret"):
            rpc.connect("127.0.0.1", port, "k")
    with rpc.Server(port=0) as server, pytest.raises(tvm.error.RPCError, match="may be anybody"):
        rpc.connect("127.0.0.1", server.port, key_file=key_file)


def test_the_file_of_a_secret_is_for_its_owner(key_file: str) -> None:
    os.chmod(key_file, 0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        rpc.Server(port=0, key_file=key_file)


def test_trackers_and_proxies_share_the_secret(key_file: str) -> None:
    with rpc.Tracker(port=0, key_file=key_file) as tracker:
        addr = ("127.0.0.1", tracker.port)
        options = {"tracker_addr": addr, "key_file": key_file}
        with (
            rpc.Proxy(port=0, **options) as proxy,
            rpc.Server(port=0, key="a", **options),
            rpc.Server("127.0.0.1", proxy.port, is_proxy=True, key="b", key_file=key_file),
        ):
            session = rpc.connect_tracker(*addr, key_file=key_file)
            assert _answers(session.request("a")) and _answers(session.request("b"))
            with pytest.raises(RuntimeError, match="requires a secret"):
                rpc.connect_tracker(*addr).summary()
            with pytest.raises(tvm.error.RPCError, match="requires a secret"):
                rpc.connect("127.0.0.1", proxy.port, "b")


def test_a_session_ends_at_its_limit() -> None:
    with rpc.Server(port=0) as server:
        remote = rpc.connect("127.0.0.1", server.port, session_timeout=0.5)
        echo = remote.get_function("testing.echo")
        time.sleep(1.2)
        with pytest.raises(tvm.error.RPCSessionTimeoutError, match="0.5s session has expired"):
            echo(1)
        busy = rpc.connect("127.0.0.1", server.port, session_timeout=0.5)
        with pytest.raises(tvm.error.RPCSessionTimeoutError):
            busy.get_function("testing.sleep_in_ffi")(30.0)
        assert _answers(rpc.connect("127.0.0.1", server.port))


def test_a_server_limits_its_sessions() -> None:
    with rpc.Server(port=0, session_timeout=0.5, max_message=100_000, max_memory=1 << 20) as server:
        remote = rpc.connect("127.0.0.1", server.port)
        with pytest.raises(tvm.error.RPCError, match="bytes of memory"):
            tvm.nd.empty((1 << 21,), "uint8", remote.cpu())
        tvm.nd.array(
            np.zeros(1 << 19, "uint8"), remote.cpu()
        )  # larger than a message, into an array
        with pytest.raises(tvm.error.RPCError, match="a message may have 100000 bytes"):
            remote.upload(bytes(200_000), "x")
        time.sleep(1)
        remote = rpc.connect("127.0.0.1", server.port)
        time.sleep(1.2)
        with pytest.raises(tvm.error.RPCSessionTimeoutError):
            remote.get_function("testing.echo")


def test_what_crashes_is_one_session(server: rpc.Server, remote: rpc.RPCSession) -> None:
    victim = rpc.connect("127.0.0.1", server.port, "x1")
    with pytest.raises(tvm.error.RPCError, match="signal 11|was lost"):
        victim.get_function("rpc.test.kill_self")(int(signal.SIGSEGV))
    assert _answers(remote)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def _wait_until_gone(*pids: int) -> None:
    deadline = time.monotonic() + 15
    while any(_is_there(pid) for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.1)


def test_no_process_is_left_of_a_killed_server() -> None:
    server = rpc.Server(port=0)
    assert server.proc is not None
    remote = rpc.connect("127.0.0.1", server.port)
    session = remote.get_function("rpc.test.getpid")()
    folder = Path(remote.get_function("tvm.rpc.server.workpath")("."))
    os.kill(server.proc.pid, signal.SIGKILL)
    _wait_until_gone(session)
    assert not folder.exists()
    with pytest.raises(tvm.error.RPCError, match="lost"):
        remote.get_function("testing.echo")
    server.terminate()


def test_no_process_is_left_of_a_killed_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time\nfrom tvm import rpc\n"
        "t = rpc.Tracker(port=0); p = rpc.Proxy(port=0); s = rpc.Server(port=0)\n"
        "r = rpc.connect('127.0.0.1', s.port)\n"
        "pid = r.get_function('rpc.test.getpid')()\n"
        "print(t.proc.pid, p.proc.pid, s.proc.pid, pid, flush=True)\n"
        "r.get_function('testing.sleep_in_ffi')(100.0)\n"
    )
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    process.kill()
    process.wait()
    _wait_until_gone(*pids)
    process.stdout.close()


def test_the_session_of_a_killed_client_ends(server: rpc.Server) -> None:
    text = (
        "from tvm import rpc\n"
        f"r = rpc.connect('127.0.0.1', {server.port}, 'x1')\n"
        "print(r.get_function('rpc.test.getpid')(), flush=True)\n"
        "r.get_function('testing.sleep_in_ffi')(100.0)\n"
    )
    client = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    session = int(client.stdout.readline())
    client.kill()
    client.wait()
    _wait_until_gone(session)
    client.stdout.close()


def test_clients_that_say_nothing_hinder_nobody(server: rpc.Server) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
    silent[0].sendall(struct.pack("<ii", base.RPC_MAGIC, 100))  # and no key
    silent[1].sendall(b"GET / HTTP/1.0\r\n\r\n")
    assert _answers(rpc.connect("127.0.0.1", server.port, "x1"))
    for sock in silent:
        sock.close()


def test_the_program_without_python_serves() -> None:
    command = [str(PROGRAM), "server", "--port=0", "--port-end=0", "--key=board"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    port = int(process.stderr.readline().rpartition(":")[2])
    remote = rpc.connect("127.0.0.1", port, "board")
    remote.upload(b"abc", "x")
    assert remote.download("x") == b"abc" and _answers(remote)
    with pytest.raises(tvm.error.RPCError, match="no server for the key 'other'"):
        rpc.connect("127.0.0.1", port, "other")
    del remote
    process.terminate()
    assert process.wait(10) == 0
    process.stderr.close()

"""Functions, arrays, objects and files of another process."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import rpc, te
from tvm.contrib import cc


def test_values_go_there_and_back(remote: rpc.RPCSession) -> None:
    echo = remote.get_function("testing.echo")
    for value in (7, -(1 << 40), 2.5, "text", "", None, True, tvm.DataType("float16x4")):
        assert echo(value) == value
    assert bytes(echo(bytearray(b"1\0003"))) == b"1\0003"
    assert echo(remote.cpu(0)) == tvm.cpu(0)  # a device of the server, as it sees it
    assert remote.get_function("rpc.test.strcat")("abc", 11) == "abc:11"


def test_an_error_there_is_an_rpc_error_here(remote: rpc.RPCSession) -> None:
    with pytest.raises(tvm.error.RPCError, match="ValueError: abc"):
        remote.get_function("rpc.test.except")("abc")
    assert remote.get_function("rpc.test.addone")(1) == 2  # the session goes on
    with pytest.raises(AttributeError):
        remote.get_function("there.is.none")
    with pytest.raises(AttributeError):
        remote.system_lib()["notexist"]


def test_arrays_live_there(remote: rpc.RPCSession) -> None:
    values = np.random.default_rng(0).random((513, 77))
    array = tvm.nd.array(values, remote.cpu(0))
    assert str(array.device).startswith("remote[")
    np.testing.assert_array_equal(array.numpy(), values)
    np.testing.assert_array_equal(array._create_view((77,), "float64", 77 * 8).numpy(), values[1])
    other = array.copyto(remote.cpu(0))
    array.copyfrom(np.zeros_like(values))
    np.testing.assert_array_equal(other.numpy(), values)
    np.testing.assert_array_equal(other.copyto(tvm.cpu()).numpy(), values)
    assert tvm.nd.array(np.zeros((0, 3)), remote.cpu()).numpy().shape == (0, 3)


def test_functions_arrays_and_objects_are_results_and_arguments(remote: rpc.RPCSession) -> None:
    assert remote.get_function("rpc.test.add_to_lhs")(10)(12) == 22
    use = remote.get_function("rpc.test.remote_return_nd")
    array = use("get_arr")()
    assert array.shape == (10,) and array.numpy().sum() == 0
    assert use("get_arr_elem")(array, 3) == 0.0
    shape = remote.get_function("runtime.ShapeTuple")(2, 3)
    assert shape.type_key == "runtime.RPCObjectRef"
    assert remote.get_function("runtime.GetShapeTupleElem")(shape, 1) == 3
    # a function of the server is an argument of another one
    called = remote.get_function("testing.test_wrap_callback")(remote.get_function("testing.nop"))
    assert called() is None


def test_values_of_this_process_are_refused_there(remote: rpc.RPCSession) -> None:
    echo = remote.get_function("testing.echo")
    with pytest.raises(TypeError, match="arrays of its own session"):
        echo(tvm.nd.array(np.zeros(3)))
    with pytest.raises(TypeError, match="functions of its own session"):
        echo(lambda: 1)
    other = rpc.LocalSession()
    with pytest.raises(TypeError, match="arrays of its own session"):
        echo(tvm.nd.array(np.zeros(3), other.cpu()))


def test_files_of_a_session(remote: rpc.RPCSession, tmp_path: Path) -> None:
    content = os.urandom(100_000)
    remote.upload(content, "folder/data.bin")
    assert remote.download("folder/data.bin") == content
    assert remote.listdir("folder") == "data.bin"
    (tmp_path / "own.txt").write_text("text")
    remote.upload(tmp_path / "own.txt")
    assert sorted(remote.listdir(".").split(",")) == ["folder", "own.txt"]
    remote.remove("own.txt")
    assert remote.listdir(".") == "folder"


@pytest.mark.parametrize("path", ["../x", "/tmp/x", "a/../../x", "a//../../x", ".."])
def test_no_path_leads_out_of_the_sessions_folder(remote: rpc.RPCSession, path: str) -> None:
    for call in (lambda: remote.upload(b"x", path), lambda: remote.download(path),
                 lambda: remote.remove(path), lambda: remote.load_module(path)):  # fmt: skip
        with pytest.raises(tvm.error.RPCError, match="the path"):
            call()


def test_links_are_not_followed(remote: rpc.RPCSession, tmp_path: Path) -> None:
    remote.upload(b"x", "plain")
    folder = Path(remote.get_function("tvm.rpc.server.workpath")("."))
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "folder").symlink_to("/etc")
    for path in ("link", "folder/passwd"):
        with pytest.raises(tvm.error.RPCError, match="link|no folder"):
            remote.download(path)
    remote.upload(b"mine", "link")  # takes the link's place
    assert remote.download("link") == b"mine"


def test_the_folder_of_a_session_is_removed_with_it(server: rpc.Server) -> None:
    remote = rpc.connect("127.0.0.1", server.port, "x1")
    remote.upload(b"x", "file")
    folder = Path(remote.get_function("tvm.rpc.server.workpath")("."))
    assert folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) == 0o700
    del remote
    deadline = 50
    while folder.exists() and deadline:
        deadline -= 1
        tvm.get_global_func("testing.sleep_in_ffi")(0.1)
    assert not folder.exists()


def _adder() -> tvm.runtime.Module:
    a = te.placeholder((102,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="myadd")


def _check_module(remote: rpc.RPCSession, folder: Path) -> None:
    lib = _adder()
    lib.export_library(folder / "lib.so")
    lib.export_library(folder / "lib.tar")
    values = np.random.default_rng(0).random(102).astype("float32")
    for name in ("lib.so", "lib.tar"):
        remote.upload(str(folder / name))
        loaded = remote.load_module(name)
        a = tvm.nd.array(values, remote.cpu())
        b = tvm.nd.array(np.zeros_like(values), remote.cpu())
        assert loaded.time_evaluator(loaded.entry_name, remote.cpu(), number=10)(a, b).mean > 0
        np.testing.assert_array_equal(b.numpy(), values + 1)
    linked = folder / "linked.so"
    linked.write_bytes(remote.download_linked_module("lib.tar"))
    own = tvm.nd.array(np.zeros_like(values))
    tvm.runtime.load_module(linked)(tvm.nd.array(values), own)
    np.testing.assert_array_equal(own.numpy(), values + 1)


def test_compiled_libraries_run_there(remote: rpc.RPCSession, tmp_path: Path) -> None:
    _check_module(remote, tmp_path)


def test_local_sessions_are_sessions(tmp_path: Path) -> None:
    local = rpc.LocalSession()
    _check_module(local, tmp_path)
    assert local.load_module(str(tmp_path / "lib.so"))["myadd"] is not None
    local.upload(b"abc", "x")
    assert local.download("x") == b"abc"
    assert local.get_function("rpc.test.add_to_lhs")(10)(12) == 22


def test_a_session_beyond_a_session(server: rpc.Server, tmp_path: Path) -> None:
    with rpc.Server(port=0, key="gate") as gate:
        through = ["rpc.Connect", "127.0.0.1", server.port, "x1", False]
        remote = rpc.connect("127.0.0.1", gate.port, key="gate", session_constructor_args=through)
        _check_module(remote, tmp_path)
        assert remote.get_function("rpc.test.add_to_lhs")(10)(12) == 22
        with pytest.raises(tvm.error.RPCError, match="ValueError: abc"):
            remote.get_function("rpc.test.except")("abc")
        with pytest.raises(tvm.error.RPCError, match="constructor"):
            rpc.connect("127.0.0.1", gate.port, "gate", session_constructor_args=["rpc.None"])


def test_programs_that_serve_over_pipes(server: rpc.Server, tmp_path: Path) -> None:
    runtime = tvm.relay.backend.Runtime("cpp", {"system-lib": True})
    a = te.placeholder((102,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    lib = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="myadd", runtime=runtime)
    program = str(tmp_path / "program")
    lib.export_library(program, fcompile=rpc.with_minrpc(cc.create_executable))
    binary = Path(program).read_bytes()
    there = ["rpc.PopenSession", binary]
    for remote in (
        rpc.PopenSession(program),
        rpc.PopenSession(binary),
        rpc.connect("127.0.0.1", server.port, "x1", session_constructor_args=there),
    ):
        assert remote.get_function("testing.echo")("xyz") == "xyz"
        x = tvm.nd.array(np.zeros(102, "float32"), remote.cpu())
        y = tvm.nd.array(np.zeros(102, "float32"), remote.cpu())
        library = remote.system_lib()
        library.time_evaluator("myadd", remote.cpu(), number=1)(x, y)
        assert y.numpy().sum() == 102
    with pytest.raises(RuntimeError, match="no file"):
        rpc.PopenSession("filenotexist")
    os.chmod(program, stat.S_IRUSR)
    with pytest.raises(RuntimeError, match="may not be executed"):
        rpc.PopenSession(program)

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tvm import rpc


@pytest.fixture(scope="module")
def server() -> Iterator[rpc.Server]:
    with rpc.Server(port=0, key="x1") as server:
        yield server


@pytest.fixture
def remote(server: rpc.Server) -> rpc.RPCSession:
    return rpc.connect("127.0.0.1", server.port, key="x1")

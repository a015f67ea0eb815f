"""All tests run with the node kernel in check mode: nodes cannot be changed once built."""

from tvm.ir.node import check_nodes

check_nodes()

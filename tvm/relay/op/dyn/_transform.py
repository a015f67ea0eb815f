"""Facets of operators of computed shapes; see `facets.py`."""

from tvm.relay.op.facets import facet_reader

__getattr__ = facet_reader(__name__, ["dyn."])

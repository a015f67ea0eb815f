"""Facets of operators that move and make elements; see `facets.py`."""

from tvm.relay.op.facets import facet_reader

__getattr__ = facet_reader(__name__, ["dyn."])

"""What the site has that Sphinx has not: a directive that lists the public names of a package.

    .. public-api:: tvm.relay.nn

is a table of its classes and functions, and what each of them documents. Which names are public is
the business of ``tools/public_api.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import public_api
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class PublicApi(SphinxDirective):
    """The public names of one package."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes that stand for the directive."""
        package = self.arguments[0]
        names = public_api.owned_names()[package]
        lines = [*overview(package, names), *reference(package, names)]
        return self.parse_text_to_nodes("\n".join(lines))


def overview(package: str, names: dict[str, Any]) -> Iterator[str]:
    """A table of names, each with the first line of its docstring."""
    yield from (".. list-table::", "   :widths: auto", "   :class: public-api", "")
    for name, value in names.items():
        first = (inspect.getdoc(value) or "").partition("\n")[0]
        yield f"   * - :py:obj:`{name} <{package}.{name}>`"
        yield f"     - {first}"
    yield ""


def reference(package: str, names: dict[str, Any]) -> Iterator[str]:
    """What each of some names documents, as directives of autodoc."""
    for name, value in names.items():
        if inspect.isclass(value):
            yield from (f".. autoclass:: {package}.{name}", "   :members:", "")
        else:
            yield from (f".. autofunction:: {package}.{name}", "")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx when it loads the extension."""
    app.add_directive("public-api", PublicApi)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

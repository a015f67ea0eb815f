"""Settings of the documentation site: ``make docs`` builds it into ``build/docs``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs"), str(ROOT / "tools")]

from tvm._ffi.libinfo import __version__  # noqa: E402

project = "classic-tvm"
author = "the authors of classic-tvm"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "site_extension",
]

html_theme = "furo"
html_title = f"tvm in Python {release}"
html_copy_source = False
exclude_patterns = ["tutorials/README.rst", "gallery/**/*.py", "gallery/*.ipynb"]

# headings of pages can be linked to: [text](page.md#heading)
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = [
    "myst.header",  # pages that programs write have several titles
    "config.cache",  # the settings of the gallery are objects
    "ref.python",  # signatures name types shortly, and three languages have a Var
]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (),
    "reset_modules": (),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "min_reported_time": 3600,
}

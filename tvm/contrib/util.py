"""``tvm.contrib.utils`` under its name of release 0.7."""

from tvm.contrib.utils import TempDirectory, filelock, is_source_path, tempdir, which
from tvm.support.deprecation import warn_renamed

warn_renamed("tvm.contrib.util", "tvm.contrib.utils")

__all__ = ["TempDirectory", "filelock", "is_source_path", "tempdir", "which"]

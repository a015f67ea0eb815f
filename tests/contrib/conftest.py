from tests.runtime.conftest import library, library_path  # noqa: F401

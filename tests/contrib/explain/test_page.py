"""The page carries everything, and nothing of it can take the page over."""

from __future__ import annotations

import base64
import gzip
import re

from tests.contrib.explain.conftest import EVIL
from tvm.contrib import explain
from tvm.contrib.explain import Report


def test_a_page_refers_to_nothing_outside(report: Report) -> None:
    text = explain.page(report)
    plain = re.sub(r'id="record">[\w+/=]+<', "<", text).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//\w+\.\w+/|\bsrc=|<link|@import|url\(|fetch\(|XMLHttp", plain)
    assert "default-src 'none'" in plain


def test_no_name_of_a_model_becomes_markup(report: Report) -> None:
    text = explain.page(report)
    assert EVIL not in text and "<b id=evil>" not in text
    assert "&lt;/script&gt;" in text  # in the title


def test_the_record_inside_is_the_report(report: Report) -> None:
    (packed,) = re.findall(r'id="record">([\w+/=]+)<', explain.page(report))
    assert gzip.decompress(base64.b64decode(packed)).decode() == report.to_json()


def test_a_page_is_small(report: Report) -> None:
    assert len(explain.page(report)) < 1_000_000

"""The checker of the built site sees what is wrong; the site itself is built and checked by `make docs`."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
find_faults = runpy.run_path(str(ROOT / "docs" / "check_site.py"))["find_faults"]

GOOD = """<html><head><link rel="stylesheet" href="style.css"></head><body>
<h1 id="top">A</h1><a href="#top">up</a> <a href="b/c.html#deep">down</a> <a href="b/">folder</a>
<a href="https://example.org/">elsewhere</a>
<img src="a%20b.png" alt="a picture"> <img src="a%20b.png" alt="">
</body></html>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("style.css", "a b.png"):
        (tmp_path / name).touch()
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "b" / "c.html").write_text('<p id="deep"></p><a href="../index.html">back</a>')
    (tmp_path / "b" / "index.html").write_text("")
    return tmp_path


def test_a_good_site_has_no_faults(site):
    assert find_faults(site) == []


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("b/c.html", "b/d.html", "index.html: the link 'b/d.html#deep' leads to no file."),
        ("#deep", "#deeper", "index.html: the link 'b/c.html#deeper' leads to no anchor."),
        ('href="#top"', 'href="#bottom"', "index.html: the link '#bottom' leads to no anchor."),
        (' alt="a picture"', "", "index.html: the picture a%20b.png has no alternative text."),
        ('"style.css"', '"https://a.net/s.css"', "index.html loads https://a.net/s.css from elsewhere."),
        ('"style.css"', '"//a.net/s.css"', "index.html loads //a.net/s.css from elsewhere."),
    ],
)
def test_a_fault_is_told(site, right, wrong, fault):
    page = site / "index.html"
    page.write_text(page.read_text().replace(right, wrong, 1))
    assert find_faults(site) == [fault]


def test_a_folder_without_pages_is_a_fault(tmp_path):
    assert find_faults(tmp_path) == [f"{tmp_path} has no pages."]

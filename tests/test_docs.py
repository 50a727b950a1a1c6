"""README.md and docs: their examples run, what they link to exists, and no public name is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import corral

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot", reason="some examples draw")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(code, name_of(page), "exec"), names)  # one page is read from top to bottom
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_every_public_name_is_in_the_guide():
    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in corral.__all__ if not name.startswith("__") and name not in text] == []

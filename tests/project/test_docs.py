"""README.md and docs: their examples run, what they link to exists, and no public name is left out."""

from __future__ import annotations

import re
import runpy
from functools import partial
from pathlib import Path

import distributed
import numpy as np
import pandas as pd
import pytest

import corral
import corral.dask
import corral.datasets
from corral.datasets import make_shifted_groups

pytestmark = pytest.mark.all_divisions  # the pages show numbers

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OUTPUTS = runpy.run_path(str(DOCS / "outputs.py"))
PAGES, examples = OUTPUTS["PAGES"], OUTPUTS["examples"]

# Files that the demo writes, without its tables.
DEMO_ENDS = (".corral", ".html", "_labels.csv", "_why.png")

# What the commands of a page write, besides the tables of penguins.
WRITTEN = {
    "README.md": {"penguins.html", "birds.corral", "birds.html", "birds_labels.csv"},
    "docs/index.md": {"penguins.html", "birds.corral", "birds.html", "birds_labels.csv"},
    "docs/tutorial.md": {"birds.corral", "birds.html", "birds_labels.csv", "new_birds.html"},
    "docs/guide/command_line.md": {
        *("birds.corral", "birds.html", "birds_labels.csv"),
        *("birds_why.png", "new_birds.html"),
    },
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run_examples(page: Path) -> None:
    """Run a page from top to bottom in the current folder, and compare what it prints with what it shows."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="some examples draw")
    for example, printed in OUTPUTS["run"](page):
        if example.output is not None:
            assert_reads_like(printed, example.output)
    plt.close("all")


NUMBER = r"[-+]?\d+(?:\.\d*)?(?:e[-+]\d+)?"


def assert_reads_like(printed: str, shown: str) -> None:
    """The same words, and numbers that differ by no more than releases of NumPy may make them differ."""
    words_printed, words_shown = (re.sub(NUMBER, "#", text).split() for text in (printed, shown))
    assert words_printed == words_shown
    computed, wanted = ([float(number) for number in re.findall(NUMBER, text)] for text in (printed, shown))
    assert computed == pytest.approx(wanted, rel=0.02, abs=0.02)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_python_is_an_example(page):
    blocks = [example for example in examples(page) if example.language == "python"]
    assert len(blocks) == len(re.findall(r"```\s*py", page.read_text(), re.IGNORECASE))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples(page) and page.name != "large_tables.md"], ids=name_of
)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(page)
    written = {path.name for path in tmp_path.iterdir()}.difference(OUTPUTS["TABLES"])
    assert written >= WRITTEN.get(name_of(page), set())


def test_commands_of_the_pages_replace_no_file_of_the_demo():
    """Which calls its files after its tables."""
    blocks = [example for page in PAGES for example in examples(page) if example.language != "python"]
    words = {word for block in blocks for line in OUTPUTS["commands"](block.code) for word in line}
    demo = {f"{name}{end}" for name in ("groups", "penguins") for end in DEMO_ENDS}
    assert "birds.corral" in words
    assert words & demo == set()


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # dask's to_parquet, with pandas 3.1
def test_the_example_on_a_cluster_runs(tmp_path, monkeypatch):
    """With workers in threads of this process; tests/dask/test_dask.py has workers in processes."""
    in_threads = partial(distributed.LocalCluster, processes=False, dashboard_address="127.0.0.1:0")
    monkeypatch.setattr(distributed, "LocalCluster", in_threads)
    monkeypatch.chdir(tmp_path)
    X, y = make_shifted_groups(40, groups=(1, 4, 5), random_state=0)
    rows, new = pd.DataFrame(X).add_prefix("v"), pd.DataFrame(X[::7] + 0.01).add_prefix("v")
    for folder, table in (("rows", rows.assign(label=y)), ("new", new)):
        Path(folder).mkdir()
        table.to_parquet(f"{folder}/0.parquet")
    run_examples(DOCS / "appendix" / "large_tables.md")
    labels = pd.read_parquet("labels")["label"]
    local = corral.RodeoClassifier(bandwidth="class").fit(rows, y)
    np.testing.assert_array_equal(labels, local.predict(new))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    links = [link for link in links if "://" not in link and "generated/" not in link]  # those see make docs
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_every_term_of_the_glossary_links_to_a_page():
    text = (DOCS / "glossary.md").read_text()
    [entries] = re.findall(r"^```{glossary}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    terms = {entry.splitlines()[0]: entry for entry in entries.strip().split("\n\n")}
    assert [term for term, entry in terms.items() if not re.search(r"\]\([\w/]+\.md", entry)] == []
    assert set(re.findall(r"{term}`([^`]+)`", text)) <= set(terms)


def test_every_public_name_is_in_the_guide():
    public = {name for name in corral.__all__ if not name.startswith("__")}
    words = re.findall(
        r"\w+", "".join(page.read_text() for page in PAGES)
    )  # RodeoPathDisplay is no RodeoPath
    assert public - set(words) == set()


@pytest.mark.parametrize("module", [corral, corral.dask, corral.datasets], ids=lambda module: module.__name__)
def test_every_public_name_has_a_page_in_the_reference(module):
    listed = re.findall(r"^    (\w+)$", (DOCS / "api.rst").read_text(), re.MULTILINE)
    assert {name for name in module.__all__ if not name.startswith("__")} - set(listed) == set()


def test_every_example_asks_a_question_and_has_a_place():
    files = sorted(DOCS.glob("examples/*/*.py"))
    order = runpy.run_path(str(DOCS / "_ext" / "example_order.py"))["ORDER"]
    assert {file.name for file in files} == set(order)
    assert [file.name for file in files if not file.read_text().splitlines()[1].endswith("?")] == []


@pytest.mark.parametrize("printed", ["row 3: 0.81 (a)", "row 3: 0.75 (b)", "row 3: 0.75 (a) 1"])
def test_other_output_is_seen(printed):
    assert_reads_like("row  3: 0.751\n(a)", "row 3: 0.75 (a)")
    with pytest.raises(AssertionError):
        assert_reads_like(printed, "row 3: 0.75 (a)")

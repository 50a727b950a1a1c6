"""Draws one picture with every display, and parts of reports: python docs/pictures.py [FOLDER]

The pictures in docs/images are shown in README and on the site. Pictures of reports need Chromium and its
driver. They have numbers that the text refers to, except the picture of the README.
"""

import base64
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select
from sklearn.datasets import load_wine

from corral import (
    BandwidthDisplay,
    CorralClassifier,
    ExplanationDisplay,
    HeldOut,
    MarkerSelector,
    RelevanceDisplay,
    RodeoClassifier,
    RodeoPathDisplay,
    SampleSizeDisplay,
    estimate_sample_sizes,
    write_report,
)
from corral.cli.demo import penguins
from corral.datasets import make_shifted_groups, make_ten_groups

IMAGES = Path(__file__).parent / "images"
DRIVER = shutil.which("chromedriver")


def displays() -> Iterator[tuple[str, Any]]:
    """Names and displays of three wines or of the paper's simulated data."""
    X, y = make_ten_groups(150, random_state=0)
    X_test, y_test = make_ten_groups(50, random_state=1)
    local = RodeoClassifier(n_jobs=2).fit(X, y)
    selected = RodeoClassifier(bandwidth="class", features="selected", n_jobs=2).fit(X, y)
    yield "bandwidths", BandwidthDisplay.from_estimator(local, X_test, y_test)
    wines = load_wine(as_frame=True)
    yield "relevance", RelevanceDisplay.from_estimator(MarkerSelector().fit(wines.data, wines.target))
    yield "explanation", ExplanationDisplay.from_estimator(selected, X_test, sample=0)
    yield "path", RodeoPathDisplay.from_estimator(local, X_test, sample=0, label=1)
    X, y = make_shifted_groups(150, groups=(1, 2), random_state=0)
    sizes = estimate_sample_sizes(
        X, y, method="bound", tolerance=0.45, initial_size=30, test_size=50, step=30, random_state=0
    )
    yield "sample_sizes", SampleSizeDisplay.from_result(sizes)


def draw(folder: Path) -> list[Path]:
    """Write all pictures; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, display in displays():
        files.append(folder / f"{name}.png")
        display.figure_.savefig(files[-1], dpi=100, metadata={"Software": None})
        plt.close(display.figure_)
    return files


# Parts of a report: first and last element, and the elements that get a number, in this order.
PARTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "report_map": ("#relevance", "#relevance .legend", ("#map table", "#map .legend")),
    "report_class": (
        "#class-pages > article",
        "#class-pages .curves",
        ("#class-pages ul", "#class-pages .control", "#class-pages .curves"),
    ),
    "report_row": (
        "#browser",
        "#row .waterfall",
        ("#list", "#row .verdict", "#row .place", "#row .place ~ p", "#row .waterfall"),
    ),
    "report_quality": ("#errors", "#reliability figure", ("#errors table", "#confusion", "#reliability")),
}
README_PART = ("#row", "#row", ())
# The README shows one row in landscape: words on the left, numbers on the right, nothing to click.
README_STYLE = """
const style = new CSSStyleSheet();
style.replaceSync(`
  #browser { display: block; }
  .picker, #row .values, #row .save, #row .behind, #row .sides > :last-child { display: none; }
  #row { display: grid; grid-template-columns: 25rem 40rem; width: 65rem; }
  #row > * { grid-column: 1; margin: 0.4rem 0; }
  #row > h3, #row > .verdict { grid-column: 1 / 3; max-width: none; }
  #row > .place { grid-row: 4; }
  #row > .sides { display: block; grid-row: 5 / 7; }
  #row > .waterfall { grid-area: 3 / 2 / 5; padding-left: 2rem; }
  #row > .place + p { grid-area: 5 / 2; padding-left: 2rem; }
  #row > .place + p + p { grid-area: 6 / 2; padding-left: 2rem; }
`);
document.adoptedStyleSheets = [style];
"""
NOVEL_ROW = "29"  # a chinstrap with a bill of 58 mm

# Numbers stand to the left of what they are about, in a margin that the page gets for them.
NUMBER_ELEMENTS = """
document.querySelectorAll(".call-out").forEach(e => e.remove());
arguments[0].forEach((selector, i) => {
  const box = document.querySelector(selector).getBoundingClientRect();
  const number = document.createElement("span");
  number.className = "call-out";
  number.textContent = i + 1;
  number.style = `position: absolute; left: ${box.left + scrollX - 31}px;
    top: ${box.top + scrollY - 2}px; z-index: 9;
    width: 25px; height: 25px; border-radius: 50%; background: #d1495b; color: #fff; text-align: center;
    font: bold 15px/25px sans-serif`;
  document.body.append(number);
});
"""


def photograph(folder: Path) -> list[Path]:
    """Write pictures of parts of two reports on penguins, as a browser shows them; return their files."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,1000"):
        options.add_argument(argument)
    files = []
    with tempfile.TemporaryDirectory() as scratch, webdriver.Chrome(options, Service(DRIVER)) as browser:
        browser.implicitly_wait(30)  # seconds, until the script has drawn what is looked for
        _open_report(browser, Path(scratch) / "birds.html", [])
        _choose_row(browser, NOVEL_ROW)
        files += [_photograph_part(browser, folder, name, PARTS[name]) for name in list(PARTS)[:3]]
        browser.execute_script(README_STYLE)
        files.append(_photograph_part(browser, folder, "report", README_PART, scale=2))
        # A model that makes errors.
        _open_report(browser, Path(scratch) / "errors.html", ["island", "bill_length_mm"])
        files.append(_photograph_part(browser, folder, "report_quality", PARTS["report_quality"]))
    return files


def _open_report(browser: Any, page: Path, dropped: list[str]) -> None:
    """Report on the new penguins of the demo, or with dropped variables on folds of the others."""
    table, new = (rows.drop(columns=["year", *dropped]).reset_index(drop=True) for rows in penguins())
    y, y_new = table.pop("species"), new.pop("species")
    classifier = CorralClassifier(random_state=0).fit(table, y)
    if dropped:
        held_out = HeldOut.of_folds(classifier, table, y)
        write_report(classifier, table, y, page, held_out=held_out, source="penguins.csv")
    else:
        held_out = HeldOut(classifier.classes_, y_new.to_numpy(), classifier.predict_proba(new))
        write_report(classifier, new, y_new, page, held_out=held_out, source="new_penguins.csv")
    browser.get(page.as_uri())
    browser.find_element(By.CSS_SELECTOR, "#row .waterfall")
    browser.execute_script("document.body.style.paddingLeft = '40px'")


def _choose_row(browser: Any, name: str) -> None:
    rows = Select(browser.find_element(By.ID, "list"))
    rows.select_by_visible_text(next(row.text for row in rows.options if row.text.startswith(f"{name}:")))
    browser.execute_script("document.activeElement.blur()")  # a frame around the list means nothing on paper


def _photograph_part(
    browser: Any, folder: Path, name: str, part: tuple[str, str, tuple[str, ...]], scale: float = 1
) -> Path:
    """Write the picture of a part of a page, with numbers beside some elements; return its file."""
    first, last, numbered = part
    browser.execute_script("scrollTo(0, 0)")  # or the links at the top would cover a part
    browser.execute_script(NUMBER_ELEMENTS, numbered)
    top, bottom = (browser.find_element(By.CSS_SELECTOR, selector).rect for selector in (first, last))
    left = top["x"] - (36 if numbered else 8)
    clip = {
        "x": left,
        "y": top["y"] - 8,
        "width": top["x"] + top["width"] + 8 - left,
        "height": bottom["y"] + bottom["height"] - top["y"] + 16,
        "scale": scale,
    }
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    file = folder / f"{name}.png"
    file.write_bytes(base64.b64decode(picture["data"]))
    return file


if __name__ == "__main__":
    mpl.use("agg")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    for file in draw(folder) + (photograph(folder) if DRIVER else []):
        print(file)

"""Draws one picture with every display, and two of the report: python docs/pictures.py [FOLDER]

The pictures in docs/images, which the README shows, are made by it. Those of the report need Chromium and
its driver.
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
from corral.datasets import make_shifted_groups, make_ten_groups

IMAGES = Path(__file__).parent / "images"
DRIVER = shutil.which("chromedriver")


def displays() -> Iterator[tuple[str, Any]]:
    """Names of pictures, and what they show of three wines or of the paper's simulated data."""
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


def photograph(folder: Path) -> list[Path]:
    """Write pictures of two parts of a report, as a browser shows them; return their files."""
    X, y = make_ten_groups(150, random_state=0)
    X_test, y_test = make_ten_groups(50, random_state=1)
    classifier = CorralClassifier(n_jobs=2, random_state=0).fit(X, y)
    held_out = HeldOut(classifier.classes_, y_test, classifier.predict_proba(X_test))
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,1000"):
        options.add_argument(argument)
    files = []
    with tempfile.TemporaryDirectory() as scratch, webdriver.Chrome(options, Service(DRIVER)) as browser:
        page = Path(scratch) / "report.html"
        write_report(classifier, X_test, y_test, page, held_out=held_out, source="groups.csv")
        browser.get(page.as_uri())
        browser.implicitly_wait(30)  # seconds, until the script has drawn what is looked for
        browser.find_element(By.CSS_SELECTOR, "#rows [type=checkbox]").click()  # wrong ones only
        browser.execute_script("scrollTo(0, 0)")  # or the links at the top would cover a part
        for part in ("relevance", "rows"):
            clip = browser.find_element(By.ID, part).rect | {"scale": 1}
            picture = browser.execute_cdp_cmd(
                "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
            )
            files.append(folder / f"report_{part}.png")
            files[-1].write_bytes(base64.b64decode(picture["data"]))
    return files


if __name__ == "__main__":
    mpl.use("agg")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    for file in draw(folder) + (photograph(folder) if DRIVER else []):
        print(file)

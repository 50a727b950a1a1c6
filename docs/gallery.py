"""Draws one picture with every display: python docs/gallery.py [FOLDER]

The pictures in docs/images, which the README shows, are made by it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from corral import (
    BandwidthDisplay,
    ExplanationDisplay,
    RelevanceDisplay,
    RodeoClassifier,
    RodeoPathDisplay,
    SampleSizeDisplay,
    estimate_sample_sizes,
)
from corral.datasets import make_shifted_groups, make_ten_groups

IMAGES = Path(__file__).parent / "images"


def displays() -> Iterator[tuple[str, Any]]:
    """Names of pictures, and what they show of the paper's simulated data."""
    X, y = make_ten_groups(150, random_state=0)
    X_test, y_test = make_ten_groups(50, random_state=1)
    local = RodeoClassifier(n_jobs=2).fit(X, y)
    selected = RodeoClassifier(bandwidth="class", features="selected", n_jobs=2).fit(X, y)
    yield "bandwidths", BandwidthDisplay.from_estimator(local, X_test, y_test)
    yield "relevance", RelevanceDisplay.from_estimator(local)
    yield "explanation", ExplanationDisplay.from_estimator(selected, X_test, sample=0)
    yield "path", RodeoPathDisplay.from_estimator(local, X_test, sample=0, label=1)
    X, y = make_shifted_groups(150, groups=(1, 2), random_state=0)
    sizes = estimate_sample_sizes(
        X, y, tolerance=0.45, initial_size=30, test_size=50, step=30, random_state=0
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


if __name__ == "__main__":
    mpl.use("agg")
    for file in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES):
        print(file)

"""Figures of the paper: box plots of mean bandwidths over trials, and means of the shifted groups."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from corral import BandwidthDisplay
from experiments import rates, shifted_groups
from experiments._paper import paper_table
from experiments._slopes import draw_rates
from experiments._trial import Experiment

# Titles of the panels in the order of the sorted classes, by experiment and figure.
PANELS = {
    "ten_groups": {"": [f"group {g}" for g in range(1, 11)]},
    "anuran": {
        "": [
            *("Adenomera andreae", "Adenomera hylaedactyla", "Ameerega trivittata", "Hyla minuta"),
            *("Hypsiboas cinerascens", "Hypsiboas cordobae", "Leptodactylus fuscus"),
        ]
    },
    "waveform": {"": [f"class {k}" for k in range(3)]},
    "digits": {
        "1 to 5": [f"digit {k}" for k in range(1, 6)],
        "6 to 0": [f"digit {k}" for k in (6, 7, 8, 9, 0)],
    },
}


def draw_figures(frames: Mapping[Experiment, pd.DataFrame], folder: Path) -> dict[str, dict[str, Path]]:
    """Draw all figures for which there are results; return their titles and files by experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, dict[str, Path]] = {}
    for experiment, frame in frames.items():
        files = drawn.setdefault(experiment.name, {})
        if experiment.name == shifted_groups.EXPERIMENT.name:
            path = folder / "shifted_groups_means.png"
            _save(_scatter(), path)
            files["Means of the five groups, with ellipses of one and two standard deviations"] = path
        if experiment.name == rates.EXPERIMENT.name:
            path = folder / "rates.png"
            _save(draw_rates(frame), path)
            files["Bandwidths of relevant variables, L1 error and excess risk against rows"] = path
        for method in experiment.drawn:
            rows = frame[(frame["method"] == method) & frame["bandwidths"].notna()]
            if experiment.name not in PANELS or rows.empty:
                continue
            bandwidths = np.array(rows["bandwidths"].tolist())  # trials, classes, variables
            for part, titles in PANELS[experiment.name].items():
                path = folder / ("_".join([experiment.name, method, *part.split()]) + ".png")
                classes = [int(title[-1]) for title in titles] if part else range(len(titles))
                _save(_box_plots(bandwidths[:, classes], titles), path)
                label = experiment.methods[method].label
                files[f"Mean bandwidths of test rows assigned to {part or 'each class'}, {label}"] = path
    return drawn


def _box_plots(bandwidths: np.ndarray, titles: Sequence[str]) -> Figure:
    """Draw one panel for each class, with one box for each variable over the trials."""
    display = BandwidthDisplay(
        bandwidths=list(bandwidths.swapaxes(0, 1)),
        titles=titles,
        feature_names=[str(j + 1) for j in range(bandwidths.shape[2])],  # the paper counts variables from 1
    ).plot()
    display.figure_.supylabel("mean bandwidth (scaled)", fontsize="medium")
    return display.figure_


def _scatter() -> Figure:
    figure = Figure(figsize=(5, 4), layout="constrained")
    panel = figure.subplots()
    for i, (group, x, y) in enumerate(paper_table("table_3").itertuples(index=False)):
        panel.plot(x, y, "o", color=f"C{i}")
        panel.annotate(f"{group:.0f}", (x, y), xytext=(4, 4), textcoords="offset points")
        for times in (1, 2):
            width, height = (2 * times * s for s in shifted_groups.STANDARD_DEVIATIONS)
            panel.add_patch(Ellipse((x, y), width, height, fill=False, color=f"C{i}", alpha=0.5))
    panel.autoscale_view()
    panel.set(xlabel="variable 1", ylabel="variable 2")
    return figure


def _save(figure: Figure, path: Path) -> None:
    with mpl.rc_context({"savefig.dpi": 80}):
        figure.savefig(path, metadata={"Software": None})
    plt.close(figure)

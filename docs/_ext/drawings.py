"""Draws the pictures of How it works during the build, or by python docs/_ext/drawings.py [FOLDER]."""

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from sphinx.application import Sphinx

from corral import CorralClassifier, RodeoClassifier, RodeoDensity
from corral.datasets import make_ten_groups, make_waveform

CORAL, TEAL, GREY = "#d1495b", "#1b7f8c", "#8a8f98"


def normal(x: np.ndarray, center: float | np.ndarray, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((x - center) / width) ** 2) / (width * np.sqrt(2 * np.pi))


def kernels() -> Figure:
    """Draw a density as a sum of bumps, one over each row."""
    rows = np.array([0.9, 1.3, 1.5, 2.6, 2.9, 4.4])
    grid = np.linspace(-0.5, 6, 400)
    bumps = normal(grid, rows[:, None], 0.45) / rows.size
    figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
    axis.plot(grid, bumps.T, color=GREY, linewidth=1)
    axis.plot(grid, bumps.sum(axis=0), color=TEAL, linewidth=2.5)
    axis.plot(rows, np.zeros(rows.size), "|", color="black", markersize=14)
    axis.set(xlabel="a variable", ylabel="density", ylim=(-0.01, None))
    return figure


def bandwidths() -> Figure:
    """Draw the same rows with three bandwidths."""
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.normal(0.3, 0.05, 40), rng.normal(0.6, 0.12, 60)])
    grid = np.linspace(0, 1, 400)
    truth = 0.4 * normal(grid, 0.3, 0.05) + 0.6 * normal(grid, 0.6, 0.12)
    figure, axes = plt.subplots(1, 3, figsize=(8, 2.4), sharey=True, layout="constrained")
    words = {0.15: "too wide", 0.035: "about right", 0.006: "too narrow"}
    for axis, h in zip(axes, words, strict=True):
        axis.fill_between(grid, truth, color=GREY, alpha=0.35)
        axis.plot(grid, normal(grid, rows[:, None], h).mean(axis=0), color=TEAL)
        axis.set(title=f"h = {h}: {words[h]}", xlabel="a variable", ylim=(0, 6))
    return figure


def bayes() -> Figure:
    """Draw two class densities, and the probabilities that Bayes' rule gives."""
    grid = np.linspace(0, 10, 400)
    first, second = 0.7 * normal(grid, 3.5, 1.1), 0.3 * normal(grid, 6.2, 1.0)
    figure, axes = plt.subplots(2, 1, figsize=(7, 3.6), sharex=True, layout="constrained")
    axes[0].plot(grid, first, color=TEAL, label="prior times density, class a")
    axes[0].plot(grid, second, color=CORAL, label="class b")
    axes[0].legend()
    axes[1].plot(grid, first / (first + second), color=TEAL)
    axes[1].plot(grid, second / (first + second), color=CORAL)
    axes[1].set(xlabel="a variable", ylabel="probability", ylim=(-0.05, 1.05))
    return figure


def rodeo() -> Figure:
    """Draw the Rodeo at one point: bandwidths and tests, sweep by sweep."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(0.5, 0.05, 300), rng.normal(0.5, 0.12, 300), rng.uniform(size=300)])
    path = RodeoDensity(scale=None, beta=0.8).fit(X).bandwidth_path([[0.5, 0.5, 0.3]])
    names = ("narrow peak", "wide peak", "uniform")
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for j, (name, color) in enumerate(zip(names, (CORAL, TEAL, GREY), strict=True)):
        axes[0].plot(path.bandwidths[:, j], marker=".", color=color, label=name)
        tested = np.flatnonzero(path.tested[:, j])
        axes[1].plot(tested + 1, path.ratios[tested, j], marker=".", color=color, label=name)
    axes[0].set(xlabel="sweep", ylabel="bandwidth $h_j$", yscale="log")
    axes[1].axhline(1, color="black", linewidth=0.8)
    axes[1].set(xlabel="sweep", ylabel=r"$|Z_j| \,/\, \lambda_j$", yscale="log")
    axes[1].legend()
    return figure


def zscores() -> Figure:
    """Draw the mean bandwidths of one of the ten groups, and their z-scores."""
    X, y = make_ten_groups(150, random_state=0)
    fitted = RodeoClassifier(scale=None).fit(X[y <= 3], y[y <= 3])
    figure, axes = plt.subplots(2, 1, figsize=(7, 3.4), sharex=True, layout="constrained")
    colors = np.where(fitted.relevant_[0], CORAL, GREY)
    axes[0].bar(np.arange(30), fitted.bandwidths_[0], color=colors)
    axes[0].set(ylabel="mean bandwidth")
    axes[1].bar(np.arange(30), fitted.zscores_[0], color=colors)
    axes[1].axhline(-1, color="black", linewidth=0.8)
    axes[1].set(ylabel="z-score", xlabel="variable")
    return figure


def contrast() -> Figure:
    """Draw what high, low, narrow and wide mean, with their effects."""
    grid = np.linspace(-4, 4, 400)
    shapes = {"high": (1.2, 1.0), "low": (-1.2, 1.0), "narrow": (0.0, 0.4), "wide": (0.0, 2.0)}
    figure, axes = plt.subplots(1, 4, figsize=(8, 2.2), sharey=True, layout="constrained")
    for axis, (name, (center, width)) in zip(axes, shapes.items(), strict=True):
        axis.fill_between(grid, normal(grid, 0, 1), color=GREY, alpha=0.5, label="background")
        axis.plot(grid, normal(grid, center, width), color=CORAL, label="class")
        axis.set(title=name, xticks=[], yticks=[])
    axes[0].legend(loc="upper left", fontsize="small")
    axes[0].set_ylim(0, 1.05)
    return figure


def pool() -> Figure:
    """Draw the log loss of each member alone and of the pool, on waveforms."""
    X, y = make_waveform(60, random_state=0)
    classifier = CorralClassifier(random_state=0).fit(X, y)
    table = classifier.member_scores_
    names = list(table["member"])
    losses = np.append(table["log_loss"], classifier.cv_log_loss_)
    shares = [f"  share {share:.0%}" if share else "  not kept" for share in table["share"]]
    figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
    bars = axis.barh([*names, "the pool"], losses, color=[GREY] * len(names) + [TEAL])
    axis.bar_label(bars, [*shares, ""], fontsize="small")
    axis.invert_yaxis()
    axis.set(xlabel="leave-one-out log loss, smaller is better", xlim=(0, 1.3 * losses.max()))
    return figure


def missing_value() -> Figure:
    """Draw a density of two variables, and the density of the first where the second is missing."""
    rng = np.random.default_rng(1)
    a = rng.multivariate_normal([2.6, 4.2], [[0.5, 0.35], [0.35, 0.5]], 25)
    grid = np.linspace(0, 6, 200)
    across = np.array(np.meshgrid(grid, grid)).T[:, :, None, :]
    density = normal(across, a, 0.45).prod(axis=-1).mean(axis=-1)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    axes[0].contour(grid, grid, density.T, colors=TEAL, linewidths=1)
    axes[0].plot(*a.T, ".", color=GREY)
    axes[0].axvline(2, color=CORAL)
    axes[0].set(xlabel="first variable", ylabel="second variable", title="both known: a point")
    axes[1].plot(grid, normal(grid, a[:, :1], 0.45).mean(axis=0), color=TEAL)
    axes[1].axvline(2, color=CORAL)
    axes[1].set(xlabel="first variable", ylabel="density", title="second missing: a line, summed up")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    draw.__name__: draw
    for draw in (kernels, bandwidths, bayes, rodeo, zscores, contrast, pool, missing_value)
}


def draw_all(folder: Path) -> None:
    """Write every picture that is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    mpl.use("agg")
    with mpl.rc_context({"svg.hashsalt": "corral", "axes.spines.top": False, "axes.spines.right": False}):
        for name, draw in PICTURES.items():
            file = folder / f"{name}.svg"
            if not file.exists():
                figure = draw()
                figure.savefig(file, metadata={"Date": None})
                plt.close(figure)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: draw_all(Path(app.srcdir) / "generated" / "drawings"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    draw_all(Path(sys.argv[1] if len(sys.argv) > 1 else "drawings"))

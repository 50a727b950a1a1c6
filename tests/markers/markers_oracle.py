"""Variables that mark a class, as contrast.py and rank_tests.py in src/corral/markers say it in words.

Counts, mid-ranks and polynomials are fractions, so that only roots, logarithms and tails are rounded.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2, hypergeom

from paper_oracle import floats


def contrast(
    X: ArrayLike,
    codes: ArrayLike,
    n_classes: int,
    *,
    weights: ArrayLike | None = None,
    significance_level: float = 0.01,
    min_effect: float = 0.15,
    max_cells: int = 500,
) -> list[list[dict[str, object]]]:
    """What can be said of class a (outer list) in variable j (inner list)."""
    columns = np.asarray(X, dtype=float).T.tolist()
    codes = np.asarray(codes).tolist()
    w = [Fraction(w_i) for w_i in ([1.0] * len(codes) if weights is None else floats(weights))]
    by_variable, n_varying = [], 0
    for column in columns:
        rows = [
            (x, a, w_i) for x, a, w_i in zip(column, codes, w, strict=True) if w_i > 0 and not math.isnan(x)
        ]
        n_varying += len({x for x, _, _ in rows}) > 1
        by_variable.append(_contrast_of_variable(rows, n_classes, significance_level, min_effect, max_cells))
    for classes_of_variable in by_variable:
        for results in classes_of_variable:
            results["pvalue"] = min(1.0, results["pvalue"] * max(n_varying, 1))
            results["markers"] = results["noticeable"] and results["pvalue"] <= significance_level
    return [[classes_of_variable[a] for classes_of_variable in by_variable] for a in range(n_classes)]


def effects_of_groups(
    x: ArrayLike, codes: ArrayLike, n_classes: int, weights: ArrayLike, groups: ArrayLike
) -> list[tuple[float, float, float]]:
    """Worth, variance and error of each class in one variable, as design_effect.py says it."""
    rows = [r for r in zip(*map(floats, (x, codes, weights, groups)), strict=True) if not math.isnan(r[0])]
    cells: dict[tuple[float, float], list[int]] = {}
    for i, (_, a, _, g) in enumerate(rows):
        cells.setdefault((a, g), []).append(i)
    cells_agree = all(len({rows[i][0] for i in members}) == 1 for members in cells.values())
    result = []
    for a in range(n_classes):
        rho = 0.0
        for classes in ([a], list(range(n_classes))):
            rho = max(rho, _intraclass_correlation(rows, cells, classes))
        if len(cells) == len({b for b, _ in cells}) or (cells_agree and len(rows) > len(cells)):
            rho = 1.0
        total = sum(w for _, b, w, _ in rows if b == a)
        squares = sum(w**2 for _, b, w, _ in rows if b == a)
        sums = [sum(rows[i][2] for i in members) ** 2 for (b, _), members in cells.items() if b == a]
        if not total:
            result.append((1.0, 0.0, 0.0))
            continue
        variance, gamma = sum(sums) / total**2, 1.0 - squares / sum(sums)
        error = (gamma * variance) ** 2 / max(len(sums) - 1, 1)
        result.append((1.0 / (1.0 + rho * (sum(sums) / squares - 1.0)), variance, error))
    return result


def _intraclass_correlation(
    rows: list[tuple[float, ...]], cells: Mapping[tuple[float, float], list[int]], classes: list[int]
) -> float:
    """The largest correlation of rows of a cell over the polynomials of ranks, in the classes together."""
    cells = {cell: members for cell, members in cells.items() if cell[0] in classes}
    members = {a: [i for i, r in enumerate(rows) if r[1] == a] for a in classes}
    members = {a: i for a, i in members.items() if i}
    n = sum(map(len, members.values()))
    between, within = len(cells) - len(members), n - len(cells)
    if not between or not within:
        return 0.0
    size = (n - sum(len(i) ** 2 / len(members[a]) for (a, _), i in cells.items())) / between
    distinct = sorted({r[0] for r in rows})
    counts = [Fraction(sum(r[0] == value for r in rows)) for value in distinct]
    rho = 0.0
    for polynomial in rank_polynomials(counts):
        values = [float(polynomial[distinct.index(r[0])]) for r in rows]
        mean = {
            a: sum(values[i] for i in class_counts) / len(class_counts) for a, class_counts in members.items()
        }
        ssb = ssw = 0.0
        for (a, _), rows_of_cell in cells.items():
            center = sum(values[i] for i in rows_of_cell) / len(rows_of_cell)
            ssb += len(rows_of_cell) * (center - mean[a]) ** 2
            ssw += sum((values[i] - center) ** 2 for i in rows_of_cell)
        variance = max((ssb / between - ssw / within) / size, 0.0)
        rho = max(rho, variance / (variance + ssw / within) if variance else 0.0)
    return rho


def least_pvalue(first: Mapping[object, int], second: Mapping[object, int]) -> float:
    """Two over the number of ways to label rows within groups and groups of one label, as counts say."""
    alone = {g: g in first for g in set(first) ^ set(second)}
    ways = math.comb(len(alone), sum(alone.values()))
    for g in set(first) & set(second):
        ways *= math.comb(first[g] + second[g], first[g])
    return min(2.0 / ways, 1.0)


def _contrast_of_variable(
    rows: list[tuple[float, int, Fraction]],
    n_classes: int,
    significance_level: float,
    min_effect: float,
    max_cells: int,
) -> list[dict[str, object]]:
    counts, values = _cell_counts(rows, n_classes, max_cells)
    active = [a for a in range(n_classes) if sum(counts[a]) >= 3]
    pair_p, pair_statistic = {}, {}
    for a in active:
        for b in active:
            if a != b:
                p, statistic = two_sample_pvalue(counts[min(a, b)], counts[max(a, b)])
                if p <= significance_level and effect_size(counts[a], counts[b]) < min_effect:
                    p = 1.0
                pair_p[a, b], pair_statistic[a, b] = p, statistic
    background = _contrast_background(counts, active, pair_p, pair_statistic, significance_level, min_effect)

    results = []
    for a in range(n_classes):
        others = [b for b in (background or active) if b != a]
        result: dict[str, object] = {
            "markers": False,
            "noticeable": False,
            "pvalue": 1.0,
            "comparable": False,
        }
        result |= {"effect": 0.0, "background": a in background}
        results.append(result)
        if a not in active or not others:
            continue
        pooled = [sum(counts[b][v] for b in others) for v in range(len(values))]
        delta, _ = sample_effects(counts[a], pooled)
        size = effect_size(counts[a], pooled)
        if size <= 1e-12:
            continue
        if background:
            p = two_sample_pvalue(counts[a], pooled)[0]
        else:
            r = len(active) // 2  # half of the others at least
            p = min(1.0, sorted(pair_p[a, b] for b in others)[r - 1] * (len(active) - r))
        result |= {"noticeable": size >= min_effect, "pvalue": p}
        result |= {"comparable": True, "effect": delta}
    return results


def _cell_counts(
    rows: list[tuple[float, int, Fraction]], n_classes: int, max_cells: int
) -> tuple[list[list[Fraction]], list[float]]:
    """Effective numbers of rows by class and cell, and the smallest value of each cell."""
    values = sorted({x for x, _, _ in rows})
    factor = []
    for a in range(n_classes):
        squares = sum(w_i**2 for _, b, w_i in rows if b == a)
        factor.append(sum(w_i for _, b, w_i in rows if b == a) / squares if squares else Fraction(0))
    counts = [
        [
            sum((w_i * factor[a] for x, b, w_i in rows if b == a and x == value), Fraction(0))
            for value in values
        ]
        for a in range(n_classes)
    ]
    if len(values) <= max_cells:
        return counts, values
    total, below = sum(map(sum, counts)), Fraction(0)
    cells: dict[int, list[int]] = {}
    for v in range(len(values)):
        here = sum(class_counts[v] for class_counts in counts)
        # Half-integers go to the even neighbour.
        cells.setdefault(round(round(max_cells * (below + here / 2) / total, 6)), []).append(v)
        below += here
    merged = [[sum(class_counts[v] for v in cell) for cell in cells.values()] for class_counts in counts]
    return merged, [values[cell[0]] for cell in cells.values()]


def _contrast_background(
    counts: list[list[Fraction]],
    active: list[int],
    pair_p: Mapping[tuple[int, int], float],
    pair_statistic: Mapping[tuple[int, int], float],
    significance_level: float,
    min_effect: float,
) -> set[int]:
    """The classes of the background; none if there is no background."""
    if len(active) <= 2:
        return set(active) if len(active) == 2 else set()
    n_pairs = len(active) * (len(active) - 1) // 2
    groups = []
    for seed in active:
        group = {seed}
        for b in sorted(set(active) - {seed}, key=lambda b, seed=seed: pair_statistic[seed, b]):
            if all(min(pair_p[b, c], pair_p[c, b]) > significance_level / n_pairs for c in group):
                group.add(b)
        groups.append(group)
    eligible = [group for group in groups if 2 * len(group) > len(active)]
    if not eligible:
        for group in groups:
            if len(group) == 1:
                continue
            inside = [sum(counts[b][v] for b in group) for v in range(len(counts[0]))]
            outside = [sum(counts[b][v] for b in active if b not in group) for v in range(len(counts[0]))]
            location, spread, *_ = sample_effects(inside, outside)[1]
            if spread >= min_effect and spread > abs(location):
                eligible.append(group)
    if not eligible:
        return set()
    largest = [group for group in eligible if len(group) == max(map(len, eligible))]
    within = [sum(pair_statistic[b, c] for b in group for c in group if b != c) for group in largest]
    close = [
        group for group, sum_ in zip(largest, within, strict=True) if sum_ <= min(within) * (1 + 1e-9) + 1e-9
    ]
    return set().union(*close)


def rank_polynomials(counts: list[Fraction], n_degrees: int = 4) -> list[list[Fraction]]:
    """Polynomials of the mid-ranks, orthogonal over counted cells; as many as there are, not normalised."""
    total, below, v = sum(counts), Fraction(0), []
    for c in counts:
        v.append(2 * (below + c / 2) / total - 1)
        below += c
    n_values = sum(c > 0 for c in counts)
    polynomials: list[list[Fraction]] = []
    for k in range(1, min(n_degrees, n_values - 1) + 1):
        p = [v_i**k for v_i in v]
        for q in [[Fraction(1)] * len(v), *polynomials]:
            square = sum(c * q_i**2 for c, q_i in zip(counts, q, strict=True))
            part = sum(c * p_i * q_i for c, p_i, q_i in zip(counts, p, q, strict=True)) / square
            p = [p_i - part * q_i for p_i, q_i in zip(p, q, strict=True)]
        polynomials.append(p)
    return polynomials


def sample_effects(first: list[Fraction], second: list[Fraction]) -> tuple[float, list[float]]:
    """Cliff's delta, and 2 / sqrt(3) times the correlations of membership with the four polynomials."""
    n1, n2 = sum(first), sum(second)
    delta, below = Fraction(0), Fraction(0)
    for f, g in zip(first, second, strict=True):
        above = n2 - below - g
        delta += f * (below - above)
        below += g
    halves = [f / n1 / 2 + g / n2 / 2 for f, g in zip(first, second, strict=True)]
    effects = [0.0] * 4
    for k, p in enumerate(rank_polynomials(halves)):
        difference = sum((f / n1 - g / n2) / 2 * p_v for f, g, p_v in zip(first, second, p, strict=True))
        norm = sum(h * p_v**2 for h, p_v in zip(halves, p, strict=True))
        effects[k] = 2 / math.sqrt(3) * _signed_root(difference * abs(difference) / norm)
    return float(delta / (n1 * n2)), effects


def effect_size(first: list[Fraction], second: list[Fraction]) -> float:
    """The largest effect; without the correction for ties where the first sample lacks rare values."""
    n1, n2 = sum(first), sum(second)
    halves = [f / n1 / 2 + g / n2 / 2 for f, g in zip(first, second, strict=True)]
    top = halves.index(max(halves))
    size = max(map(abs, sample_effects(first, second)[1]))
    if 2 * halves[top] > 1 and first[top] / n1 > second[top] / n2:
        size *= math.sqrt(1 - sum(h**3 for h in halves))
    return size


def two_sample_pvalue(first: list[Fraction], second: list[Fraction]) -> tuple[float, float]:
    """The combined p-value of two counted samples, and their largest squared standardised statistic."""
    both = [f + g for f, g in zip(first, second, strict=True)]
    n1, n2 = sum(first), sum(second)
    p_values, squares, lengths = [], [0.0], [Fraction(0)] * len(both)
    for polynomial in rank_polynomials(both):
        norm = sum(c * p_v**2 for c, p_v in zip(both, polynomial, strict=True)) / (n1 + n2)
        total = sum(f * p_v for f, p_v in zip(first, polynomial, strict=True))
        lengths = [length + p_v**2 / norm for length, p_v in zip(lengths, polynomial, strict=True)]
        z = _signed_root(total * abs(total) / norm * (n1 + n2 - 1) / (n1 * n2))
        squares.append(z * z)
        is_fisher = sum(c > 0 for c in both) == 2 and all(c.denominator == 1 for c in first + second)
        if abs(z) <= 2 and not is_fisher:
            p_values.append(math.erfc(abs(z) / math.sqrt(2)))
        else:
            scores = [(1 if z >= 0 else -1) * p_v for p_v in polynomial]
            p_values.append(min(1.0, 2 * permutation_tail(first, second, scores, norm)))
    if not p_values:
        return 1.0, 0.0
    kurtosis = sum(c * length**2 for c, length in zip(both, lengths, strict=True)) / (n1 + n2)
    least_rows = max(5 * ((n1 - n2) / (n1 + n2)) ** 2 * kurtosis, 2 * (kurtosis - 29))
    dependent = 2 * max(both) > n1 + n2 or min(n1, n2) < least_rows
    least, significance_level = math.inf, 0.0
    for smaller, most, share in ((0, 1, 0.5), (1, 2, 0.25), (2, 4, 0.25)):
        if len(p_values) > smaller:
            together = p_values[:most]
            if dependent:
                p = len(together) * min(together)
            else:
                p = chi2.sf(sum(NormalDist().inv_cdf(p / 2) ** 2 for p in together), len(together))
            least = min(least, p / share)
            significance_level += share
    return min(1.0, least * significance_level), max(squares)


def permutation_tail(
    first: list[Fraction], second: list[Fraction], scores: list[Fraction], square: Fraction
) -> float:
    """P(S >= s) of the sum of scores in a sample without replacement; `square` is the mean squared score."""
    cells = [(f, g, x) for f, g, x in zip(first, second, scores, strict=True) if f + g > 0]
    lowest, highest = min(x for f, _, x in cells if f > 0), max(x for _, g, x in cells if g > 0)
    n1, n = sum(first), sum(first) + sum(second)
    if lowest >= highest:
        drawn, left = (sum(c[i] for c in cells if c[2] == lowest) for i in (0, 1))
        return math.exp(_log_choose(drawn + left, drawn) - _log_choose(n, n1))
    if len(cells) == 2 and all(c.denominator == 1 for f, g, _ in cells for c in (f, g)):
        f, g, _ = max(cells, key=lambda cell: cell[2])
        return float(hypergeom.sf(int(f) - 1, int(n), int(f + g), int(n1)))
    return _saddlepoint_tail([(float(f), float(g), _signed_root(x * abs(x) / square)) for f, g, x in cells])


def _saddlepoint_tail(cells: list[tuple[float, float, float]]) -> float:
    """The logistic regression of membership on the score: first the intercept for a slope, then the slope."""
    n1, n2 = math.fsum(f for f, _, _ in cells), math.fsum(g for _, g, _ in cells)
    n, total = n1 + n2, math.fsum(f * x for f, _, x in cells)

    def intercept_at(slope: float) -> float:
        def excess_at(a: float) -> float:
            return math.fsum((f + g) * expit(a + slope * x) for f, g, x in cells) - n1

        return brentq(excess_at, -700.0, 700.0, xtol=1e-14)

    def excess(slope: float) -> float:
        a = intercept_at(slope)
        return math.fsum((f + g) * x * expit(a + slope * x) for f, g, x in cells) - total

    largest = 1.0
    while excess(largest) < 0:
        largest *= 2
    slope = brentq(excess, 0.0, largest, xtol=1e-14)
    intercept = intercept_at(slope)
    gain = intercept * n1 + slope * total - n1 * math.log(n1 / n) - n2 * math.log(n2 / n)
    gain -= math.fsum((f + g) * math.log1p(math.exp(intercept + slope * x)) for f, g, x in cells)
    i00 = i01 = i11 = 0.0
    for f, g, x in cells:
        p = expit(intercept + slope * x)
        i00, i01, i11 = (i + (f + g) * p * (1 - p) * x**k for k, i in enumerate((i00, i01, i11)))
    w, tilt = math.sqrt(2 * gain), slope
    if len(cells) == 2:
        distance = abs(cells[0][2] - cells[1][2])
        tilt = -math.expm1(-distance * slope) / distance
    u = tilt * math.sqrt((i00 * i11 - i01**2) / (n1 * n2 / n))
    return math.erfc((w + math.log(u / w) / w) / math.sqrt(2)) / 2


def _log_choose(n: Fraction, k: Fraction) -> float:
    """Logarithm of a binomial coefficient, also of numbers that are not whole."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _signed_root(square: Fraction) -> float:
    """The root of a square with the sign of what was squared."""
    return math.copysign(math.sqrt(abs(square)), square)

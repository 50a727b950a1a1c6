"""Model files: safetensors with a JSON header. Reading one never runs code and trusts nothing in it.

A file holds what `fit` has learnt and the training rows, not the arrays that the compiled loops read: those
are arranged anew, as in `fit`, from numbers that have been checked. So no file, damaged or forged, makes a
kernel read beyond an array.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from corral._core.density import ClassDensity, DensityPlan
from corral._core.model import ClassBandwidths, FittedModel
from corral._core.rows import ClassRows, LabelledRows, TrainingRows
from corral._core.scale import Scale, learn_scale
from corral._core.settings import Floats, Integers
from corral._estimators.classifier import RodeoClassifier
from corral._estimators.density import RodeoDensity
from corral._estimators.lspc import LSPClassifier
from corral._estimators.search import RodeoClassifierCV
from corral._estimators.selector import RodeoSelector
from corral._estimators.validation import check_choice, check_rodeo
from corral._persist.files import check_readable, replacing

# Raised when a file of this corral would be misread by older ones. In files of format 1 weights are numbers
# of copies, so that n is their sum, and equal rows are not merged.
FORMAT = 2

# Parameters that earlier versions had; they mattered to fitting alone.
_FORMER = {"LSPClassifier": ("centers",)}

# How a model is computed belongs to the machine it runs on, not to the model.
_NOT_KEPT = ("n_jobs", "verbose")

# Bounds that every fitted model keeps; within them no square of a distance over a bandwidth overflows.
_LARGEST = float(np.finfo(np.float64).max)
_SMALLEST = float(np.finfo(np.float64).tiny)
_BANDWIDTHS = (1e-21, 1e11)
_LARGEST_MIXING = 1e24
_LARGEST_COEFFICIENT = 1e150


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, whole or not at all.

    Parameters
    ----------
    estimator : RodeoClassifier, RodeoClassifierCV, RodeoDensity, RodeoSelector or LSPClassifier
        A fitted one. Its parameters `n_jobs` and `verbose` are not kept. Of a `DaskRodeoClassifier` save what
        its `to_local` returns.
    path : str or path
        The file; one that is there is replaced when the new one is complete, which has its mode; a link
        stays, and what it leads to is replaced. Any name will do; the commands of `corral` write ``.corral``.

    See Also
    --------
    load_model : Reads the file.

    Notes
    -----
    The file is in the safetensors format. Its header names the estimator, its parameters, classes and
    variables, and the versions that wrote it; a checksum covers it all. Classifiers keep their training
    rows in it, since class densities are made of them; `LSPClassifier` keeps its centres.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from corral import RodeoClassifier, load_model, save_model
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(50, groups=(4, 5), random_state=0)
    >>> classifier = RodeoClassifier(beta=0.8).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(classifier, Path(folder, "groups.corral"))
    ...     loaded = load_model(Path(folder, "groups.corral"))
    >>> loaded
    RodeoClassifier(beta=0.8)
    >>> bool((loaded.predict_proba(X) == classifier.predict_proba(X)).all())
    True
    """
    safetensors = _import_safetensors()
    kind = _KINDS.get(type(estimator).__name__)
    if kind is None or type(estimator) is not kind.type:
        raise TypeError(f"a model file holds {' or '.join(_KINDS)}, not {type(estimator).__name__}.")
    check_is_fitted(estimator, msg="%(name)s is not fitted: call fit before saving it.")
    arrays: dict[str, NDArray[Any]] = {}
    header = {
        "format": FORMAT,
        "estimator": type(estimator).__name__,
        "versions": {name: version(name) for name in ("corral", "numpy", "scikit-learn")},
        "params": _encode(_kept_params(estimator), "params", arrays),
        "n_features_in_": estimator.n_features_in_,
        "feature_names_in_": getattr(estimator, "feature_names_in_", np.empty(0)).tolist() or None,
        "state": _encode(kind.pack(estimator), "state", arrays),
    }
    text = json.dumps(header, allow_nan=False)
    with replacing(path) as part:
        # Not by save_file, whose files no one else may read.
        part.write_bytes(safetensors.numpy.save(arrays, {"corral": text, "sha256": _checksum(text, arrays)}))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file written by `save_model`.

    Nothing in the file is run, and what is not understood is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator : as it was saved
        It predicts the same numbers on the same machine. `n_jobs` and `verbose` have their defaults.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no model of corral, damaged, or written by a newer version.

    See Also
    --------
    save_model : Writes the file, and has an example.
    """
    header, arrays = _read(path)
    try:
        kind = _KINDS[header["estimator"]]
        estimator = _construct(kind.type, _decode(header["params"], arrays))
        d = _positive(header["n_features_in_"])
        _set_features(estimator, d, header["feature_names_in_"])
        kind.restore(estimator, _State(_decode(header["state"], arrays), header["format"]), d)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {_reason(error)}") from None
    return estimator


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says of itself: estimator, versions, variables, parameters as written."""
    header, _ = _read(path)
    return {name: value for name, value in header.items() if name != "state"}


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a model, of whatever version."""
    safetensors = _import_safetensors()
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            return "corral" in (opened.metadata() or {})
    except (safetensors.SafetensorError, AttributeError, TypeError):
        return False


# Reading


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file whose checksum holds."""
    safetensors = _import_safetensors()
    file = check_readable(path)
    try:
        with safetensors.safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            if "corral" not in metadata:
                raise ValueError(f"{path} is not a model of corral.")
            text = metadata["corral"]
            header = _parse(path, text)
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} is not a model of corral, or cut short: {error}.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from None
    if _checksum(text, arrays) != metadata.get("sha256"):
        raise ValueError(f"{path} is damaged: its checksum does not hold.")
    # A byte that is neither 0 nor 1 counts as true in some places of numpy and as its value in others.
    return header, {name: a.view(np.uint8) != 0 if a.dtype == bool else a for name, a in arrays.items()}


def _parse(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    """The header, once it is known that this version can read it."""
    try:
        header = json.loads(text)
        format_ = _positive(header["format"])
    except (LookupError, RecursionError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: its header cannot be read.") from None
    if format_ > FORMAT:
        raise ValueError(
            f"{path} was written by a newer corral (format {format_}, and this one reads {FORMAT}): "
            "install a newer version."
        )
    if header.get("estimator") not in _KINDS:
        raise ValueError(f"{path} holds {header.get('estimator')!r}, which this corral does not know.")
    missing = {"params", "n_features_in_", "feature_names_in_", "state", "versions"} - header.keys()
    if missing:
        raise ValueError(f"{path} is damaged: its header lacks {sorted(missing)[0]!r}.")
    if not isinstance(header["versions"], dict):
        raise ValueError(f"{path} is damaged: versions is not a table of values.")
    return dict(header)


def _checksum(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()


def _reason(error: Exception) -> str:
    said = f"it has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return said if said.endswith(".") else said + "."


def _import_safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError('Model files need safetensors: pip install "corral[cli]".') from error
    return safetensors


# Values as JSON. Arrays of numbers are kept aside, under the path that leads to them.


def _encode(value: Any, where: str, arrays: dict[str, NDArray[Any]]) -> Any:
    match value:
        case np.ndarray():
            return _encode_array(value, where, arrays)
        case np.generic():
            return _encode(value.item(), where, arrays)
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"!float": repr(value)}
        case dict() if all(isinstance(key, str) and not key.startswith("!") for key in value):
            return {key: _encode(of_key, f"{where}/{key}", arrays) for key, of_key in value.items()}
        case list() | tuple():
            items = [_encode(item, f"{where}/{i}", arrays) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"!tuple": items}
    name = where.replace("/", ".")
    raise ValueError(
        f"{name} is a {type(value).__name__}, which a model file cannot hold: only numbers, text and arrays."
    )


def _encode_array(array: NDArray[Any], where: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if array.dtype.kind in "biuf" and array.itemsize <= 8:
        # Always in the byte order of the format, which is also what keeps the checksum the same.
        arrays[where] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        return {"!array": where}
    if array.dtype.kind == "U" and array.ndim == 1:
        return {"!text": array.tolist()}
    if array.dtype.kind == "O" and array.ndim == 1:
        return {"!objects": [_encode(item, f"{where}/{i}", arrays) for i, item in enumerate(array)]}
    raise ValueError(
        f"{where.replace('/', '.')} is an array of {array.dtype}, which a model file cannot hold."
    )


def _decode(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if any(key.startswith("!") for key in value):
        return _decode_tagged(value, arrays)
    return {key: _decode(of_key, arrays) for key, of_key in value.items()}


def _decode_tagged(value: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    match value:
        case {"!array": str() as name}:
            return arrays[name]
        case {"!float": ("inf" | "-inf" | "nan") as text}:
            return float(text)
        case {"!tuple": list() as items}:
            return tuple(_decode(item, arrays) for item in items)
        case {"!text": list() as items} if items and all(isinstance(item, str) for item in items):
            return np.array(items)
        case {"!objects": list() as items}:
            objects = np.empty(len(items), dtype=object)
            objects[:] = [_decode(item, arrays) for item in items]
            return objects
    raise ValueError(f"it holds {next(iter(value))!r}, which is not understood")


def _positive(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{value!r} is not a positive whole number")
    return value


class _State:
    """What a file of some format says of an estimator; each value is checked when it is asked for."""

    def __init__(self, values: Any, format_: int) -> None:
        self.format = format_
        if not isinstance(values, dict):
            raise ValueError("its state is not a table of values")
        self._values = values

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def part(self, name: str) -> _State:
        return _State(self._values[name], self.format)

    def parts(self, name: str, n: int) -> list[_State]:
        return [_State(values, self.format) for values in self._of_length(name, n)]

    def arrays(self, name: str, n: int) -> list[_State]:
        """A list of arrays, each to be asked for by the same name."""
        return [_State({name: array}, self.format) for array in self._of_length(name, n)]

    def _of_length(self, name: str, n: int) -> list[Any]:
        found = self._values[name]
        if not isinstance(found, list) or len(found) != n:
            raise ValueError(f"{name} is not a list of {n}")
        return found

    def floats(
        self, name: str, shape: tuple[int | None, ...], low: float = -_LARGEST, high: float = _LARGEST
    ) -> Floats:
        return self._array(name, np.dtype(np.float64), shape, low, high)

    def integers(self, name: str, shape: tuple[int | None, ...], low: int, high: int) -> Integers:
        return self._array(name, np.dtype(np.int64), shape, low, high)

    def bools(self, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        return self._array(name, np.dtype(np.bool_), shape, False, True)

    def _array(
        self, name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...], low: float, high: float
    ) -> NDArray[Any]:
        found = self._values[name]
        if not isinstance(found, np.ndarray) or found.dtype != dtype or found.ndim != len(shape):
            raise ValueError(f"{name} is not an array of {dtype} with {len(shape)} axes")
        if any(n not in (None, of_axis) for n, of_axis in zip(shape, found.shape, strict=True)):
            raise ValueError(f"{name} has the shape {found.shape} and not {shape}")
        if not np.all((found >= low) & (found <= high)):  # which NaN never is
            raise ValueError(f"{name} holds a number that is not between {low:g} and {high:g}")
        return found

    def number(self, name: str, low: float = -_LARGEST, high: float = _LARGEST) -> float:
        found = self._values[name]
        if not isinstance(found, float) or not low <= found <= high:
            raise ValueError(f"{name} is not a number between {low:g} and {high:g}")
        return found

    def integer(self, name: str, low: int, high: int) -> int:
        found = self._values[name]
        if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
            raise ValueError(f"{name} is not a whole number between {low} and {high}")
        return found

    def boolean(self, name: str) -> bool:
        found = self._values[name]
        if not isinstance(found, bool):
            raise ValueError(f"{name} is neither true nor false")
        return found

    def table(self, name: str) -> dict[str, Any]:
        found = self._values[name]
        if not isinstance(found, dict):
            raise ValueError(f"{name} is not a table of values")
        return found

    def columns(self, name: str) -> dict[str, Any]:
        """Results of a search: columns of one length."""
        found = self.table(name)
        if len({len(column) for column in found.values()}) != 1:
            raise ValueError(f"{name} has columns of different lengths")
        return found

    def labels(self, name: str) -> NDArray[Any]:
        """Classes in order, each once."""
        found = self._values[name]
        if not isinstance(found, np.ndarray) or found.ndim != 1 or found.size < 1:
            raise ValueError(f"{name} is not a list of classes")
        plain = found.dtype != object or all(isinstance(label, str | int | float) for label in found)
        if not plain or not np.array_equal(np.unique(found), found):
            raise ValueError(f"{name} are not different classes in order")
        return found


# Estimators: what is kept of each, and how it is put together again.


def _kept_params(estimator: BaseEstimator) -> dict[str, Any]:
    return {k: v for k, v in estimator.get_params(deep=False).items() if k not in _NOT_KEPT}


def _construct(kind: type[BaseEstimator], params: Any) -> Any:
    """Make an unfitted estimator; a parameter that the file does not name has its default."""
    params = {name: value for name, value in params.items() if name not in _FORMER.get(kind.__name__, ())}
    unknown = params.keys() - _kept_params(kind()).keys()
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {min(unknown)!r}")
    return kind(**params)


def _set_features(estimator: BaseEstimator, d: int, names: Any) -> None:
    estimator.n_features_in_ = d
    if names is None:
        return
    if not isinstance(names, list) or len(names) != d or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names_in_ is not a list of {d} names")
    estimator.feature_names_in_ = np.array(names, dtype=object)


def _pack_scale(scale: Scale) -> dict[str, Any]:
    knots = None
    if scale.knots is not None:
        values, ranks = zip(*scale.knots, strict=True)
        knots = {"values": list(values), "ranks": list(ranks)}
    return {"center": scale.center, "half_width": scale.half_width, "mixing": scale.mixing, "knots": knots}


def _restore_scale(state: _State, d: int) -> Scale:
    mixing = state.floats("mixing", (d, d), -_LARGEST_MIXING, _LARGEST_MIXING) if "mixing" in state else None
    knots = None
    if "knots" in state:
        part = state.part("knots")
        values = [x.floats("values", (None,)) for x in part.arrays("values", d)]
        sizes = [x.size for x in values]
        ranks = [
            x.floats("ranks", (n,), 0.0, 1.0) for x, n in zip(part.arrays("ranks", d), sizes, strict=True)
        ]
        if min(sizes) < 1 or any((np.diff(x) <= 0.0).any() for x in (*values, *ranks)):
            raise ValueError("knots do not rise")
        knots = tuple(zip(values, ranks, strict=True))
    return Scale(state.floats("center", (d,)), state.floats("half_width", (d,), _SMALLEST), knots, mixing)


def _restore_rows(scaled: Floats, weights: Floats | None, state: _State) -> tuple[ClassRows, Floats]:
    """Arrange rows. The grid of bandwidths is the one in the file: parameters may have been set since."""
    rows = ClassRows.arrange(scaled, weights)
    if state.format == 1 and weights is not None:  # weights were numbers of copies
        rows = replace(rows, measure=replace(rows.measure, n=float(weights.sum())))
    grid = state.floats("h", (None,), *_BANDWIDTHS)
    if grid.size < 1 or (np.diff(grid) >= 0.0).any():
        raise ValueError("h does not fall")
    return rows, grid


def _pack_classifier(estimator: RodeoClassifier) -> dict[str, Any]:
    model = estimator.model_
    X, y, weights = model.training
    densities = [
        {
            "h": density.grid,
            "variables": density.plan.variables,
            "fixed": density.plan.fixed,
            "outside": density.plan.outside,
            "separate": density.plan.separate,
        }
        for density in model.densities
    ]
    return {
        "X": X,
        "codes": np.searchsorted(model.labels, y),
        "weights": weights,
        "scale": _pack_scale(model.scale),
        "widths": model.bandwidths.widths,
        "densities": densities,
        "classes_": model.labels,
        "class_prior_": model.prior,
        "initial_bandwidth_": model.bandwidths.initial,
        "bandwidths_": model.bandwidths.means,
        "zscores_": model.bandwidths.zscores,
        "shadow_scores_": model.bandwidths.shadow_scores,
        "relevant_": model.relevant,
    }


def _restore_classifier(estimator: RodeoClassifier, state: _State, d: int) -> None:
    settings = estimator.model_settings()
    classes = state.labels("classes_")
    X = state.floats("X", (None, d))
    weights = state.floats("weights", (len(X),), 0.0) if "weights" in state else None
    y = classes[state.integers("codes", (len(X),), 0, classes.size - 1)]
    training = TrainingRows(X, y, weights)
    data = LabelledRows.sort(training, classes, merge=state.format > 1)
    prior = state.floats("class_prior_", (classes.size,), 0.0, 1.0)
    if abs(prior.sum() - 1.0) > 1e-8:
        raise ValueError("class_prior_ does not sum to 1")
    scale = _restore_scale(state.part("scale"), d)
    estimator.model_ = FittedModel(
        settings=settings,
        labels=data.labels,
        counts=data.counts,
        prior=prior,
        n_copies=data.n_copies,
        training=training,
        data=data,
        scale=scale,
        variable_scale=scale if scale.mixing is None else learn_scale(data.X, data.weights, "range"),
        densities=_restore_densities(state, data, scale),
        bandwidths=_restore_bandwidths(state, data.labels.size, d),
        relevant=state.bools("relevant_", (classes.size, d)),
    )


def _restore_bandwidths(state: _State, k: int, d: int) -> ClassBandwidths:
    shadow = None
    if "shadow_scores_" in state:
        shadow = state.floats("shadow_scores_", (k, d), -math.inf, math.inf)
    widths = state.floats("widths", (d,), _SMALLEST)
    return ClassBandwidths(
        initial=state.floats("initial_bandwidth_", (k,), *_BANDWIDTHS),
        means=state.floats("bandwidths_", (k, d), *_BANDWIDTHS),
        zscores=state.floats("zscores_", (k, d)),
        shadow_scores=shadow,
        widths=widths,
        varies=np.ones(d, dtype=np.bool_),
    )


def _restore_densities(state: _State, data: LabelledRows, scale: Scale) -> list[ClassDensity]:
    scaled = scale.transform(data.X)
    return [
        _restore_density(part, scaled[at], data.weights_of(at), mixed=scale.mixing is not None)
        for part, at in zip(state.parts("densities", data.labels.size), data.members(), strict=True)
    ]


def _restore_density(state: _State, scaled: Floats, weights: Floats | None, *, mixed: bool) -> ClassDensity:
    d = scaled.shape[1]
    variables = state.integers("variables", (None,), 0, d - 1)
    if variables.size < 1 or (np.diff(variables) <= 0).any():
        raise ValueError("variables do not rise")
    fixed = state.floats("fixed", (variables.size,), *_BANDWIDTHS) if "fixed" in state else None
    separate = state.boolean("separate")
    if (separate and (fixed is None or mixed)) or (mixed and variables.size < d):
        raise ValueError("densities contradict each other")
    rows, grid = _restore_rows(scaled, weights, state)
    return ClassDensity.build(rows, grid, DensityPlan(variables, fixed, state.number("outside"), separate))


def _pack_search(estimator: RodeoClassifierCV) -> dict[str, Any]:
    return {
        "best_estimator": {
            "params": _kept_params(estimator.best_estimator_),
            "state": _pack_classifier(estimator.best_estimator_),
        },
        **{name: getattr(estimator, name) for name in ("best_params_", "cv_results_", *_SCORES)},
    }


_SCORES = ("best_score_", "best_log_loss_", "temperature_")


def _restore_search(estimator: RodeoClassifierCV, state: _State, d: int) -> None:
    estimator.check_parameters()
    part = state.part("best_estimator")
    winner = _construct(RodeoClassifier, part.table("params"))
    names = getattr(estimator, "feature_names_in_", None)
    _set_features(winner, d, None if names is None else names.tolist())
    _restore_classifier(winner, part.part("state"), d)
    estimator.best_estimator_ = winner
    estimator.model_ = winner.model_
    estimator.best_params_ = state.table("best_params_")
    estimator.cv_results_ = state.columns("cv_results_")
    for name in _SCORES:
        setattr(estimator, name, state.number(name, 0.0))


def _pack_density(estimator: RodeoDensity) -> dict[str, Any]:
    rows = estimator.density_.rows
    return {
        "rows": rows.all(),
        "weights": rows.weights,
        "h": estimator.density_.grid,
        "scale": _pack_scale(estimator.scale_),
    }


def _restore_rodeo_density(estimator: RodeoDensity, state: _State, d: int) -> None:
    check_choice("scale", estimator.scale, ("range", "standard", None))
    check_rodeo(estimator.update, estimator.beta, estimator.c0, estimator.min_bandwidth)
    rows = state.floats("rows", (None, d), -1e100, 1e100)
    if len(rows) < 1:
        raise ValueError("rows are missing")
    weights = state.floats("weights", (len(rows),), _SMALLEST) if "weights" in state else None
    scale = _restore_scale(state.part("scale"), d)
    if scale.knots is not None or scale.mixing is not None:
        raise ValueError("the scale is not one of a density")
    estimator.scale_ = scale
    estimator.density_ = ClassDensity(*_restore_rows(rows, weights, state), DensityPlan(np.arange(d)))


def _pack_selector(model: RodeoSelector) -> dict[str, Any]:
    return {name: getattr(model, name) for name in ("classes_", "relevant_", "bandwidths_", "zscores_")}


def _restore_selector(model: RodeoSelector, state: _State, d: int) -> None:
    model.classes_ = state.labels("classes_")
    k = model.classes_.size
    model.relevant_ = state.bools("masks_" if state.format == 1 else "relevant_", (k, d))
    model.bandwidths_ = state.floats("bandwidths_", (k, d), *_BANDWIDTHS)
    model.zscores_ = state.floats("zscores_", (k, d))


def _pack_lspc(model: LSPClassifier) -> dict[str, Any]:
    learnt = ("classes_", "class_count_", "centers_", "dual_coef_", "best_params_", *_CHOSEN)
    return {
        "scale": _pack_scale(model.scale_),
        **{name: getattr(model, name) for name in learnt if hasattr(model, name)},
    }


# Only where there was something to choose.
_CHOSEN = ("cv_results_", "best_index_", "best_score_")


def _restore_lspc(model: LSPClassifier, state: _State, d: int) -> None:
    model.check_parameters()
    model.classes_ = state.labels("classes_")
    k = model.classes_.size
    model.class_count_ = state.floats("class_count_", (k,), 0.0)
    model.centers_ = state.floats("centers_", (None, d), -1e100, 1e100)
    if len(model.centers_) < 1:
        raise ValueError("centers_ are missing")
    model.dual_coef_ = state.floats(
        "dual_coef_", (len(model.centers_), k), -_LARGEST_COEFFICIENT, _LARGEST_COEFFICIENT
    )
    chosen = state.part("best_params_")
    model.best_params_ = {name: chosen.number(name, 1e-10, 1e10) for name in ("sigma", "alpha")}
    model.scale_ = _restore_scale(state.part("scale"), d)
    if model.scale_.mixing is not None:
        raise ValueError("the scale is not one of LSPClassifier")
    if "cv_results_" in state:
        model.cv_results_ = state.columns("cv_results_")
        n_tried = len(next(iter(model.cv_results_.values())))
        model.best_index_ = state.integer("best_index_", 0, n_tried - 1)
        model.best_score_ = state.number("best_score_", 0.0, 1.0)


class _Kind(NamedTuple):
    """An estimator that files can hold.

    Attributes
    ----------
    type : its class.
    pack : gives what has been learnt, as values that `_encode` takes.
    restore : checks such values, and the parameters, and sets them; is told the number of variables.
    """

    type: type[BaseEstimator]
    pack: Callable[[Any], dict[str, Any]]
    restore: Callable[[Any, _State, int], None]


_KINDS = {
    kind.type.__name__: kind
    for kind in (
        _Kind(RodeoClassifier, _pack_classifier, _restore_classifier),
        _Kind(RodeoClassifierCV, _pack_search, _restore_search),
        _Kind(RodeoDensity, _pack_density, _restore_rodeo_density),
        _Kind(RodeoSelector, _pack_selector, _restore_selector),
        _Kind(LSPClassifier, _pack_lspc, _restore_lspc),
    )
}

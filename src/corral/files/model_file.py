"""Model files: safetensors with a JSON header. Reading one never runs code and trusts nothing in it.

A file holds what `fit` has learnt and the training rows, not the arrays that the compiled loops read: those
are arranged anew, as in `fit`, from numbers that their classes have checked (`validate`). So no file, damaged
or forged, makes a kernel read beyond an array.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from corral.files.atomic import check_readable, replacing
from corral.files.codec import build
from corral.files.estimators import KINDS, pack_estimator, restore_estimator
from corral.files.values import Writer, digest

# Raised with every change of what a file holds; files of another format are refused.
FORMAT = 6


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, whole or not at all.

    Parameters
    ----------
    estimator : one of the estimators of this package
        A fitted one. Its parameters `n_jobs` and `verbose` are not kept, and those that have been changed
        since the fit, such as `beta`, are kept as they were in it: a file predicts what the estimator
        does. Of a `DaskCorralClassifier` save what its `to_local` returns, and of a pipeline the last step,
        ``pipeline[-1]``: what is loaded then takes rows as ``pipeline[:-1].transform`` returns them.
    path : str or path
        The file; one that is there is replaced when the new one is complete, which has its mode; a link
        stays, and what it leads to is replaced. Any name will do; the commands of `corral` write ``.corral``.

    See Also
    --------
    load_model : Reads the file.

    Notes
    -----
    The file is in the safetensors format. Its header names the estimator, its parameters, classes and
    variables, rows if they have names, what ``corral fit --na-values`` named, and the versions that wrote it;
    a checksum covers it all. The same model gives the same bytes, so that a hash of the file identifies it.
    Classifiers keep their training rows in it, since class densities are made of them, but of thinned classes
    only those nearest to the centres of cells and those that were held out; `LSPClassifier` keeps centres.
    A model that has kept only some of its rows refuses what needs all: `partial_fit`, `selection_frequency`.
    Names of rows are not kept of thinned classes of a table with more than 16,777,216 rows.

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
    if isinstance(estimator, Pipeline):
        raise TypeError(
            "a model file holds no pipeline: save its last step, save_model(pipeline[-1], path), and give "
            "the loaded model rows that the other steps have transformed, pipeline[:-1].transform(X)."
        )
    writer = Writer()
    header = {
        "format": FORMAT,
        "versions": {name: version(name) for name in ("corral", "numpy", "scikit-learn")},
        **{name: writer.encode(value, name) for name, value in pack_estimator(estimator).items()},
    }
    text = json.dumps(header, allow_nan=False)
    checksum = _checksum(text, writer.digests)
    content = safetensors.numpy.save(writer.arrays, {"corral": text, "sha256": checksum})
    with replacing(path) as part:
        # Not by save_file, whose files no one else may read.
        part.write_bytes(_with_names_in_order(content))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file written by `save_model`.

    Nothing in the file is run, and what is not understood is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator : as it was saved
        It predicts the same numbers on the same machine. Parameters that predictions depend on are those of
        the fit, whatever `set_params` has made of them since; `n_jobs` and `verbose` have their defaults.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no model of corral, damaged, of another format, or larger than the memory.

    See Also
    --------
    save_model : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> from corral import RodeoDensity, load_model, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(RodeoDensity().fit([[0.0], [1.0], [3.0]]), f"{folder}/density.corral")
    ...     load_model(f"{folder}/density.corral")
    RodeoDensity()
    """
    try:
        header, arrays = _read(path)
        try:
            return restore_estimator(header, arrays)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {_reason(error)}") from None
    except MemoryError:
        raise ValueError(f"{path} cannot be read: it needs more memory than there is.") from None


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says of itself: estimator, versions, variables, parameters as written."""
    header, _ = _read(path)
    return {name: value for name, value in header.items() if name not in ("state", "row_names")}


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a model, of whatever version."""
    safetensors = _import_safetensors()
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            return "corral" in (opened.metadata() or {})
    except (safetensors.SafetensorError, AttributeError, TypeError):
        return False


def _with_names_in_order(content: bytes) -> bytes:
    """The same file with the names in its head in alphabetical order.

    Safetensors writes them in another order every time, and the same model should be the same bytes.
    """
    start = 8 + int.from_bytes(content[:8], "little")
    names = json.loads(content[8:start])
    head = json.dumps(names, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + content[start:]


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
    if _checksum(text, {name: digest(array) for name, array in arrays.items()}) != metadata.get("sha256"):
        raise ValueError(f"{path} is damaged: its checksum does not hold.")
    # A byte that is neither 0 nor 1 counts as true in some places of numpy and as its value in others.
    return header, {name: a.view(np.uint8) != 0 if a.dtype == bool else a for name, a in arrays.items()}


def _parse(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    """The header, once it is known that this version can read it."""
    try:
        header = json.loads(text)
        format_ = build(int, header["format"], {}, "format")
    except (LookupError, RecursionError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: its header cannot be read.") from None
    if format_ != FORMAT:
        raise ValueError(
            f"{path} has format {format_}, but this version of corral reads format {FORMAT} alone: load it "
            "with the version that wrote it, or fit the model again."
        )
    if header.get("estimator") not in KINDS:
        raise ValueError(f"{path} holds {header.get('estimator')!r}, which this corral does not know.")
    expected = {"params", "n_features_in_", "feature_names_in_", "row_names", "state", "versions"}
    missing = expected - header.keys()
    if missing:
        raise ValueError(f"{path} is damaged: its header lacks {sorted(missing)[0]!r}.")
    if not isinstance(header["versions"], dict):
        raise ValueError(f"{path} is damaged: versions is not a table of values.")
    return dict(header)


def _checksum(text: str, digests: Mapping[str, bytes]) -> str:
    """Checksum of a file: of its header, and of the names and digests of its arrays."""
    checksum = hashlib.sha256(text.encode())
    for name in sorted(digests):
        checksum.update(f"{name} ".encode() + digests[name])
    return checksum.hexdigest()


def _reason(error: Exception) -> str:
    said = str(error) or type(error).__name__
    if isinstance(error, KeyError):
        said = f"it has no {error}"
    if isinstance(error, AttributeError):
        said = f"it has no {error.name!r}"
    return said if said.endswith(".") else said + "."


def _import_safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError('Model files need safetensors: pip install "corral[cli]".') from error
    return safetensors

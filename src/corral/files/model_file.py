"""Model files: safetensors with a JSON header. Reading one never runs code and trusts nothing in it.

A file holds the fitted model and the training rows, but not the arrays of the compiled loops: these are made
again, as in `fit`, from numbers that their classes have checked (`validate`). So no file, damaged or forged,
can make a kernel read beyond an array.
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

# Increased with every change of the format; files of another format are refused.
FORMAT = 6


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, whole or not at all.

    Parameters
    ----------
    estimator : one of the estimators of this package
        A fitted estimator. Its parameters `n_jobs` and `verbose` are not kept. Other parameters, such as
        `beta`, are kept as they were in the fit, so that the file predicts the same as the estimator. For a
        `DaskCorralClassifier` save the result of its `to_local`, and for a pipeline its last step,
        ``pipeline[-1]``: the loaded model then takes rows as ``pipeline[:-1].transform`` returns them.
    path : str or path
        The file, of any name; examples call it ``.corral``. An old file is replaced when the new one is
        complete, and its permissions are kept. A link stays, and its target is replaced.

    See Also
    --------
    load_model : Reads the file.

    Notes
    -----
    The file is in the safetensors format. Its header holds the estimator, its parameters, classes and
    variables, the names of rows, the values of ``corral fit --na-values``, and the versions that wrote it; a
    checksum covers everything. The same model gives the same bytes, so a hash of the file identifies it.
    The file holds the training rows, since class densities are made of them; for compressed classes it holds
    only the rows nearest to the centers of cells and the held-out rows, and for `LSPClassifier` its centers.
    A model without all of its rows refuses methods that need them: `partial_fit`, `selection_frequency`.
    Names of rows are not kept for compressed classes of a table with more than 16,777,216 rows.

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
        # Not by `safetensors.numpy.save_file`, whose files only their owner can read.
        part.write_bytes(_with_names_in_order(content))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file written by `save_model`.

    Loading runs no code, and a file that is not fully understood is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator : estimator
        It predicts the same numbers as the saved one on the same machine. Parameters that predictions depend
        on have the values of the fit, even after `set_params`; `n_jobs` and `verbose` have their defaults.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a model of corral, is damaged, has another format, or needs too much memory.

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
    """The header of a model file: estimator, versions, variables and parameters."""
    header, _ = _read(path)
    return {name: value for name, value in header.items() if name not in ("state", "row_names")}


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether the header of a file says that it is a model, of any version."""
    safetensors = _import_safetensors()
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            return "corral" in (opened.metadata() or {})
    except (safetensors.SafetensorError, AttributeError, TypeError):
        return False


def _with_names_in_order(content: bytes) -> bytes:
    """The content of a file with the names in its header in alphabetical order.

    Safetensors writes them in a random order, and the same model should give the same bytes.
    """
    start = 8 + int.from_bytes(content[:8], "little")
    names = json.loads(content[8:start])
    head = json.dumps(names, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + content[start:]


# Reading


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file, whose checksum is verified."""
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
    """The header, which is refused if this version cannot read it."""
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
    """Checksum of the header and of the names and digests of the arrays."""
    checksum = hashlib.sha256(text.encode())
    for name in sorted(digests):
        checksum.update(f"{name} ".encode() + digests[name])
    return checksum.hexdigest()


def _reason(error: Exception) -> str:
    """The message of an error as a sentence."""
    message = str(error) or type(error).__name__
    if isinstance(error, KeyError):
        message = f"it has no {error}"
    if isinstance(error, AttributeError):
        message = f"it has no {error.name!r}"
    return f"{message.removesuffix('.')}."


def _import_safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError('Model files need safetensors: pip install "corral[cli]".') from error
    return safetensors

"""Write and read model files: safetensors with a JSON header. Reading runs no code and checks every value.

A file contains the fitted model and its training rows. The arrays of the compiled loops are not in the file:
they are computed again after the other values were checked (`validate`). So a damaged or forged file cannot
make a compiled loop read beyond the end of an array.
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

# Increase it with every change of the format; files with another number are refused.
FORMAT = 6


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, completely or not at all.

    Parameters
    ----------
    estimator : one of the estimators of this package
        A fitted estimator. Its parameters `n_jobs` and `verbose` are not saved. Other parameters, such as
        `beta`, are saved with their values at the time of the fit, so a loaded model predicts the same as the
        estimator. For a `DaskCorralClassifier`, save the result of its method `to_local`. For a pipeline,
        save its last step, ``pipeline[-1]``: rows for the loaded model must first be transformed by
        ``pipeline[:-1].transform``.
    path : str or path
        The file. Any name is allowed; ``.corral`` is the usual ending. An existing file is replaced when the
        new file is complete, and its permissions stay. If the path is a link, the target of the link is
        replaced.

    See Also
    --------
    load_model : Read a model file.

    Notes
    -----
    The file is in the safetensors format. Its header contains the type of the estimator, its
    parameters, classes and variables, the names of rows, the values of ``corral fit --na-values``, and the
    versions of corral, numpy and scikit-learn. A checksum covers the header and all arrays. The same model is
    always written as the same bytes, so a hash of the file identifies the model.

    The file contains training rows, because class densities are computed from them: all rows, or a part of
    the rows if classes are compressed. The file of an `LSPClassifier` contains its centers, which are
    training rows. A model without all of its training rows raises an error in methods that need all of them:
    `partial_fit`, `selection_frequency`. Names of rows are not saved if classes are compressed and the table
    had more than 16,777,216 rows.

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
            "a model file cannot contain a pipeline: save the last step, save_model(pipeline[-1], path), and "
            "transform rows for the loaded model by the other steps, pipeline[:-1].transform(X)."
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
        # `safetensors.numpy.save_file` would write a file that only its owner can read.
        part.write_bytes(_with_names_in_order(content))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file written by `save_model`.

    Loading runs no code. A file with any missing, unexpected or invalid value is refused.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator : estimator
        The fitted estimator. On the same machine, its predictions are equal to the predictions of the saved
        estimator. Parameters on which predictions depend have their values at the time of the fit, even if
        `set_params` was called later; `n_jobs` and `verbose` have their default values.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file is not a model of corral, is damaged, has the format of another version, or needs too much
        memory.

    See Also
    --------
    save_model : Write a model file.

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
        raise ValueError(f"{path} cannot be read: there is not enough memory.") from None


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file: estimator, versions, variables and parameters."""
    header, _ = _read(path)
    return {name: value for name, value in header.items() if name not in ("state", "row_names")}


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file has the header of a model of any version of corral."""
    safetensors = _import_safetensors()
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            return "corral" in (opened.metadata() or {})
    except (safetensors.SafetensorError, AttributeError, TypeError):
        return False


def _with_names_in_order(content: bytes) -> bytes:
    """Return the content of a file with the names in its header sorted.

    Safetensors writes names in a random order, but the same model should be written as the same bytes.
    """
    start = 8 + int.from_bytes(content[:8], "little")
    names = json.loads(content[8:start])
    head = json.dumps(names, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + content[start:]


# Reading


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file; raise ValueError if the checksum is wrong."""
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
        raise ValueError(f"{path} is not a model of corral, or is incomplete: {error}.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from None
    if _checksum(text, {name: digest(array) for name, array in arrays.items()}) != metadata.get("sha256"):
        raise ValueError(f"{path} is damaged: its checksum is wrong.")
    # Make every byte of a boolean array 0 or 1: numpy treats other bytes inconsistently.
    return header, {name: a.view(np.uint8) != 0 if a.dtype == bool else a for name, a in arrays.items()}


def _parse(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    """Return the header; raise ValueError if this version of corral cannot read the file."""
    try:
        header = json.loads(text)
        format_ = build(int, header["format"], {}, "format")
    except (LookupError, RecursionError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: its header cannot be read.") from None
    if format_ != FORMAT:
        raise ValueError(
            f"{path} has format {format_}, but this version of corral reads only format {FORMAT}: load the "
            "file "
            "with the version that wrote it, or fit the model again."
        )
    if header.get("estimator") not in KINDS:
        raise ValueError(f"{path} contains {header.get('estimator')!r}, which is not an estimator of corral.")
    expected = {"params", "n_features_in_", "feature_names_in_", "row_names", "state", "versions"}
    missing = expected - header.keys()
    if missing:
        raise ValueError(f"{path} is damaged: its header lacks {sorted(missing)[0]!r}.")
    if not isinstance(header["versions"], dict):
        raise ValueError(f"{path} is damaged: versions is not a table of values.")
    return dict(header)


def _checksum(text: str, digests: Mapping[str, bytes]) -> str:
    """Return the checksum of the header and of the names and checksums of the arrays."""
    checksum = hashlib.sha256(text.encode())
    for name in sorted(digests):
        checksum.update(f"{name} ".encode() + digests[name])
    return checksum.hexdigest()


def _reason(error: Exception) -> str:
    """Return the message of an error as a sentence."""
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

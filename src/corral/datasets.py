"""Generators and loaders of the data in the paper's experiments, and of the Palmer penguins.

Generators need no files, and the penguins come with the package palmerpenguins. The other loaders (``pip
install "corral[data]"``) read tables of UCI from the folder ``data_home`` or, if this is None, from the
folder in the environment variable ``CORRAL_DATA``. If neither is given, they download UCI's files to the
user's cache. A folder holds the tables as comma-separated files with one header line, which may be compressed
(then ``.gz`` is added to the name):
``anuran_mfcc.csv``, ``optdigits_train.csv``, ``optdigits_test.csv`` and ``waveform_noise.csv``.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import importlib.util
import io
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state, check_scalar

__all__ = [
    "load_anuran",
    "load_optdigits",
    "load_penguins",
    "load_waveform",
    "make_shifted_groups",
    "make_ten_groups",
    "make_waveform",
]

_Samples = tuple[NDArray[np.float64], NDArray[np.int64]]
_Seed = int | np.random.RandomState | None

# The group means in Table 3 of the paper.
_SHIFTED_MEANS = {
    1: (0.0, 0.0),
    2: (0.1635, 0.2044),
    3: (-0.2452, 0.1431),
    4: (-0.2180, -0.3815),
    5: (0.3815, -0.1907),
}

# Breiman's base waves: triangles of height 6 over 21 positions, centered at positions 7, 15 and 11.
_BASE_WAVES = np.maximum(6.0 - np.abs(np.arange(21) - np.array([[6], [14], [10]])), 0.0)
# The two waves that each class mixes, with the class codes of UCI's waveform.c and UCI's table.
_WAVE_PAIRS = np.array([[0, 1], [0, 2], [1, 2]])

_PAPER_SPECIES = (
    "AdenomeraAndre",
    "AdenomeraHylaedactylus",
    "Ameeregatrivittata",
    "HylaMinuta",
    "HypsiboasCinerascens",
    "HypsiboasCordobae",
    "LeptodactylusFuscus",
)
_ALL_SPECIES = (*_PAPER_SPECIES, "OsteocephalusOophagus", "Rhinellagranulosa", "ScinaxRuber")


def make_ten_groups(n_per_class: int = 150, *, random_state: _Seed = None) -> _Samples:
    r"""Generate the paper's ten-group example.

    Of 30 variables, six are relevant for group :math:`y`:

    .. math:: X_i \sim N(0.5, (0.02 (i - y + 1))^2), \quad i = y, \dots, y + 5,

    All other variables are uniform on (0, 1), and all variables are independent.

    Parameters
    ----------
    n_per_class : int, default=150
        Number of samples of each group.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the samples.

    Returns
    -------
    X : ndarray of shape (10 * n_per_class, 30)
        The samples, one group after the other.
    y : ndarray of shape (10 * n_per_class,)
        The group of each sample, 1 to 10.

    See Also
    --------
    make_shifted_groups : Groups that differ in their means.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> from corral.datasets import make_ten_groups
    >>> X, y = make_ten_groups(50, random_state=0)
    >>> X.shape
    (500, 30)
    >>> bool(X[y == 3, 2].std() < 0.03 < X[y == 3, 0].std())
    True
    """
    check_scalar(n_per_class, "n_per_class", Integral, min_val=1)
    rng = check_random_state(random_state)
    y = np.repeat(np.arange(1, 11), n_per_class)
    X = rng.uniform(size=(y.size, 30))
    for group in range(1, 11):
        # Variable i of the paper is column i - 1, so the group's variables start at column group - 1.
        X[y == group, group - 1 : group + 5] = rng.normal(0.5, 0.02 * np.arange(1, 7), (n_per_class, 6))
    return X, y


def make_shifted_groups(
    n_per_class: int = 200, *, groups: Sequence[int] = (1, 2, 3, 4, 5), random_state: _Seed = None
) -> _Samples:
    r"""Generate the paper's example of four groups around a first group.

    The first two of ten variables are relevant, :math:`N(\mu^y, \mathrm{diag}(0.1^2, 0.2^2))` with the
    means of the paper's Table 3; the other eight are uniform on (0, 1).

    Parameters
    ----------
    n_per_class : int, default=200
        Number of samples of each group.
    groups : sequence of int, default=(1, 2, 3, 4, 5)
        The groups to generate, each at most once.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the samples.

    Returns
    -------
    X : ndarray of shape (len(groups) * n_per_class, 10)
        The samples, one group after the other in the order of `groups`.
    y : ndarray of shape (len(groups) * n_per_class,)
        The group of each sample.

    See Also
    --------
    make_ten_groups : Groups that do not differ in their means.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(4, 5), random_state=0)
    >>> X.shape
    (200, 10)
    >>> [int(X[y == group, 0].mean().round(1) * 10) for group in (4, 5)]
    [-2, 4]
    """
    check_scalar(n_per_class, "n_per_class", Integral, min_val=1)
    for group in groups:
        if group not in _SHIFTED_MEANS:
            raise ValueError(f"Unknown group {group!r}; the groups are 1, 2, 3, 4 and 5.")
    if not 0 < len(groups) == len(set(groups)):
        raise ValueError(f"groups must list at least one group and no group twice, got {groups!r}.")
    rng = check_random_state(random_state)
    y = np.repeat(np.array(groups, dtype=np.int64), n_per_class)
    X = rng.uniform(size=(y.size, 10))
    means = np.array([_SHIFTED_MEANS[group] for group in groups])
    X[:, :2] = rng.normal(np.repeat(means, n_per_class, axis=0), [0.1, 0.2])
    return X, y


def make_waveform(
    n_per_class: int = 100, *, noise_features: int = 19, random_state: _Seed = None
) -> _Samples:
    r"""Generate Breiman's waveforms with extra noise variables.

    A sample of class :math:`k` is :math:`u h_a + (1 - u) h_b + \varepsilon` in its first 21 variables:
    :math:`h_a` and :math:`h_b` are the two triangular base waves of the class, :math:`u` is uniform on
    (0, 1) and the same for all variables of a sample, and :math:`\varepsilon` is standard normal. The
    noise variables that follow are standard normal too. Waves and class codes are as in
    :func:`load_waveform`.

    Parameters
    ----------
    n_per_class : int, default=100
        Number of samples of each class.
    noise_features : int, default=19
        Number of noise variables; the default is their number in UCI's table.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the samples.

    Returns
    -------
    X : ndarray of shape (3 * n_per_class, 21 + noise_features)
        The samples, one class after the other.
    y : ndarray of shape (3 * n_per_class,)
        The class of each sample, 0 to 2.

    See Also
    --------
    load_waveform : UCI's table of waveforms.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, Classification and Regression Trees,
    Wadsworth, 1984, pages 49-55.

    Examples
    --------
    >>> from corral.datasets import make_waveform
    >>> X, y = make_waveform(100, random_state=0)
    >>> X.shape
    (300, 40)
    >>> X[y == 1].mean(axis=0)[[6, 10, 14]].round().astype(int).tolist()  # at the peaks of the waves
    [4, 4, 1]
    """
    check_scalar(n_per_class, "n_per_class", Integral, min_val=1)
    check_scalar(noise_features, "noise_features", Integral, min_val=0)
    rng = check_random_state(random_state)
    y = np.repeat(np.arange(3), n_per_class)
    weight = rng.uniform(size=(y.size, 1))
    X = rng.standard_normal((y.size, 21 + noise_features))
    first, second = _BASE_WAVES[_WAVE_PAIRS[y].T]
    X[:, :21] += weight * first + (1.0 - weight) * second
    return X, y


def load_anuran(
    *,
    species: str | Sequence[str] = "paper",
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float64], NDArray[Any]]:
    """Load the calls of frogs and toads as 22 mel-frequency cepstral coefficients.

    The documentation of the module says where the table is read from.

    Parameters
    ----------
    species : {"paper", "all"}, str or sequence of str, default="paper"
        The species to keep: the seven species of the paper, all ten species, or the given names.
    data_home : path-like or None, default=None
        Folder with the table.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    Bunch or (data, target)
        With `data` of shape (n_samples, 22), `target` (names of species), `feature_names`,
        `target_names`, `family`, `genus`, `record_id`, `DESCR` and `filename`. Samples with the same
        `record_id` are syllables of one recording of one animal: to measure the scores of a classifier on
        other animals, split by `record_id`.

    See Also
    --------
    corral.CorralClassifier : Its `fit` takes `groups`, here the recordings.

    Examples
    --------
    >>> from corral.datasets import load_anuran
    >>> frogs = load_anuran()  # doctest: +SKIP
    >>> frogs.data.shape  # doctest: +SKIP
    (6865, 22)
    """
    names = {"paper": _PAPER_SPECIES, "all": _ALL_SPECIES}
    kept = names.get(species, (species,)) if isinstance(species, str) else tuple(species)
    for name in kept:
        if name not in _ALL_SPECIES:
            raise ValueError(f"Unknown species {name!r}; the species are {', '.join(_ALL_SPECIES)}.")
    if not kept:
        raise ValueError(f"species must list at least one species, got {species!r}.")
    path, cells = _load(_ANURAN, data_home)
    cells = cells[cells["species"].isin(kept)]
    return _result(
        _ANURAN,
        cells,
        return_X_y,
        target=cells["species"].to_numpy(str),
        target_names=np.array(sorted(set(kept))),
        family=cells["family"].to_numpy(str),
        genus=cells["genus"].to_numpy(str),
        record_id=cells["record_id"].to_numpy(np.int64),
        filename=path,
    )


def load_optdigits(
    *,
    subset: str = "all",
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float64], NDArray[Any]]:
    """Load handwritten digits as images of 8 x 8 pixels, each 0 to 16.

    The documentation of the module says where the tables are read from.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="all"
        UCI's training table, UCI's test table (which is :func:`sklearn.datasets.load_digits` and has digits
        of other writers), or the rows of both tables in this order.
    data_home : path-like or None, default=None
        Folder with the tables.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    Bunch or (data, target)
        With `data` of shape (n_samples, 64), image row by image row, `target` (0 to 9),
        `feature_names`, `target_names`, `DESCR` and `filenames`.

    See Also
    --------
    sklearn.datasets.load_digits : The test table, which needs no file.

    Examples
    --------
    >>> from corral.datasets import load_optdigits
    >>> digits = load_optdigits(subset="train")  # doctest: +SKIP
    >>> digits.data.shape  # doctest: +SKIP
    (3823, 64)
    """
    subsets = {"train": _OPTDIGITS[:1], "test": _OPTDIGITS[1:], "all": _OPTDIGITS}
    if subset not in subsets:
        raise ValueError(f"subset must be 'train', 'test' or 'all', got {subset!r}.")
    paths, parts = zip(*(_load(table, data_home) for table in subsets[subset]), strict=True)
    cells = _import_extra("pandas").concat(parts)
    return _result(
        _OPTDIGITS[0],
        cells,
        return_X_y,
        target=cells["class"].to_numpy(np.int64),
        target_names=np.arange(10),
        filenames=list(paths),
    )


def load_waveform(
    *,
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float64], NDArray[Any]]:
    """Load the 5000 waveforms with 19 noise variables that UCI distributes.

    The documentation of the module says where the table is read from. :func:`make_waveform` draws new
    samples from the same distribution.

    Parameters
    ----------
    data_home : path-like or None, default=None
        Folder with the table.
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    Bunch or (data, target)
        With `data` of shape (5000, 40), the noise in the last 19 columns, `target` (0 to 2),
        `feature_names`, `target_names`, `DESCR` and `filename`.

    See Also
    --------
    make_waveform : Generates new waveforms.

    Examples
    --------
    >>> from corral.datasets import load_waveform
    >>> waves = load_waveform()  # doctest: +SKIP
    >>> waves.data.shape  # doctest: +SKIP
    (5000, 40)
    """
    path, cells = _load(_WAVEFORM, data_home)
    target = cells["class"].to_numpy(np.int64)
    return _result(_WAVEFORM, cells, return_X_y, target=target, target_names=np.arange(3), filename=path)


def load_penguins(*, return_X_y: bool = False) -> Bunch | tuple[Any, NDArray[np.str_]]:
    """Load the Palmer penguins: 344 penguins of three species, with missing values and text columns.

    The table is read from the package palmerpenguins (``pip install "corral[data]"``), so no network is
    needed.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return only ``(data, target)``.

    Returns
    -------
    Bunch or (data, target)
        With `data`, a pandas frame of 344 rows and 7 columns, of which `island` and `sex` hold text, `target`
        (the species), `feature_names`, `target_names`, `DESCR` and `filename`. The column `sex` has 11
        missing values, and each measurement has 2.

    Examples
    --------
    >>> from corral.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.data.shape
    (344, 7)
    >>> penguins.data.isna().sum().to_dict()["sex"]
    11
    >>> penguins.target_names.tolist()
    ['Adelie', 'Chinstrap', 'Gentoo']
    """
    package = importlib.util.find_spec("palmerpenguins")  # the package itself is not imported
    if package is None or not package.submodule_search_locations:
        raise ImportError('Loading data needs palmerpenguins: pip install "corral[data]".')
    path = Path(package.submodule_search_locations[0], "data", "penguins.csv")
    content = path.read_bytes().replace(b"\r\n", b"\n")
    if hashlib.sha256(content).hexdigest() != _PENGUINS_SHA256:
        raise ValueError(f"{path} is not the table of penguins with the SHA-256 {_PENGUINS_SHA256}.")
    table = _import_extra("pandas").read_csv(io.BytesIO(content))
    target = table.pop("species").to_numpy(str)
    if return_X_y:
        return table, target
    return Bunch(
        data=table,
        target=target,
        feature_names=table.columns.tolist(),
        target_names=np.unique(target),
        DESCR=_PENGUINS_DESCR,
        filename=str(path),
    )


# Patterns of cells. No table has missing values, infinities or names with a space.
_CELLS = {
    "a number": r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,2})?",
    "a whole number": r"\d{1,18}",
    "a name": r"[A-Za-z]+",
}


@dataclass(frozen=True)
class _DataFile:
    """A table: its file in a data folder, and the original of UCI."""

    name: str  # file name in a data folder, where ".gz" may follow
    columns: Mapping[str, str]  # key of the pattern of cells in `_CELLS`, by column name
    url: str  # path below UCI_URL
    original: str  # name of UCI's file, inside the archive if there is one
    sha256: str  # checksum of UCI's file after line ends are normalized
    description: str
    original_has_header: bool = False


# All originals are below this address, which tests replace by a local address.
UCI_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/"

_ANURAN = _DataFile(
    name="anuran_mfcc.csv",
    columns={
        **{f"mfcc_{i}": "a number" for i in range(1, 23)},
        **dict.fromkeys(("family", "genus", "species"), "a name"),
        "record_id": "a whole number",
    },
    url="00406/Anuran%20Calls%20(MFCCs).zip",
    original="Frogs_MFCCs.csv",
    sha256="8b161e8d8535b871043cce7ecb7a3496e4b8baef377f1fe9bd4bc91b6effca38",
    description="""\
Anuran Calls (MFCCs), 7195 syllables of 60 recordings, 10 species of frogs and toads.
Creators: Juan Colonna, Eduardo Nakamura, Marco Cristo, Marcelo Gordo.
Source: UCI Machine Learning Repository, https://doi.org/10.24432/C5CC9H
Licence: Creative Commons Attribution 4.0 (CC BY 4.0)
Every syllable was divided by its largest coefficient, so mfcc_1 is exactly 1 in most rows.
""",
    original_has_header=True,
)
_OPTDIGITS = tuple(
    _DataFile(
        name=f"optdigits_{subset}.csv",
        columns={**{f"p{i}": "a number" for i in range(1, 65)}, "class": "a whole number"},
        url=f"optdigits/optdigits.{subset[:3]}",
        original=f"optdigits.{subset[:3]}",
        sha256=sha256,
        description="""\
Optical Recognition of Handwritten Digits, 5620 images: 3823 to train with and 1797 to test.
Creators: E. Alpaydin, C. Kaynak.
Source: UCI Machine Learning Repository, https://doi.org/10.24432/C50P49
Licence: Creative Commons Attribution 4.0 (CC BY 4.0)
""",
    )
    for subset, sha256 in (
        ("train", "e1b683cc211604fe8fd8c4417e6a69f31380e0c61d4af22e93cc21e9257ffedd"),
        ("test", "6ebb3d2fee246a4e99363262ddf8a00a3c41bee6014c373ed9d9216ba7f651b8"),
    )
)
_WAVEFORM = _DataFile(
    name="waveform_noise.csv",
    columns={**{f"x{i}": "a number" for i in range(1, 41)}, "class": "a whole number"},
    url="waveform/waveform-+noise.data.Z",
    original="waveform-+noise.data",
    sha256="b95842ef008156c06fbdebd9b6b1c45b058dfd6592d41f21c73b8c164b9579c6",
    description="""\
Waveform Database Generator (Version 2), 5000 generated samples of 3 classes.
Creators: L. Breiman, C. J. Stone.
Source: UCI Machine Learning Repository, https://doi.org/10.24432/C56014
Licence: Creative Commons Attribution 4.0 (CC BY 4.0)
""",
)

_PENGUINS_SHA256 = "f204db2c753b0937caac3cb35258562c14f073e4bbc76be24b4c51ce22767a93"
_PENGUINS_DESCR = """\
Palmer penguins, 344 adult penguins of 3 species on islands of the Palmer Archipelago, Antarctica.
Creators: Kristen B. Gorman, Tony D. Williams, William R. Fraser; Allison M. Horst and Alison P. Hill made
the table.
Source: Horst, Hill and Gorman (2020), palmerpenguins, https://doi.org/10.5281/zenodo.3960218
Licence: Creative Commons Zero (CC0)
"""


def _result(
    table: _DataFile, cells: Any, return_X_y: bool, *, target: NDArray[Any], **more: Any
) -> Bunch | tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the result of a loader, in which all columns of numbers are features."""
    features = [column for column, content in table.columns.items() if content == "a number"]
    data = np.array(cells[features], dtype=np.float64, order="C")
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, feature_names=features, DESCR=table.description, **more)


def _load(table: _DataFile, data_home: str | os.PathLike[str] | None) -> tuple[str, Any]:
    """Return the path of a table and its cells as text, from a folder if one is given, else from UCI."""
    folder = os.environ.get("CORRAL_DATA") if data_home is None else data_home
    path = _find(table, Path(folder).expanduser()) if folder else _download(table)
    try:
        # Cells are read as text: Python converts it to the nearest float, which not every version of pandas
        # does. The last cells of a short line are empty.
        cells = _import_extra("pandas").read_csv(
            path, header=None, dtype=object, na_filter=False, skip_blank_lines=False, encoding="latin-1"
        )
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as a table: {str(error).strip()}.") from error
    if folder and cells.iloc[0].tolist() != list(table.columns):
        raise ValueError(f"Line 1 of {path} is not the header of {table.name}.")
    cells = cells[1 if folder or table.original_has_header else 0 :].set_axis(list(table.columns), axis=1)
    if cells.empty:
        raise ValueError(f"Line 2 of {path} is missing: the table has no rows.")
    _check(cells, table, path)
    return str(path), cells


def _find(table: _DataFile, folder: Path) -> Path:
    for path in (folder / table.name, folder / f"{table.name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"There is no {table.name} or {table.name}.gz in the data folder {folder}.")


def _check(cells: Any, table: _DataFile, path: Path) -> None:
    """Raise ValueError if a cell does not match its column; the message says which cell."""
    for column, content in table.columns.items():
        wrong = cells[column][~cells[column].str.fullmatch(_CELLS[content])]
        for row, cell in wrong.items():
            raise ValueError(f"Line {row + 1} of {path}, column {column}: {cell!r} is not {content}.")


def _download(table: _DataFile) -> Path:
    """Return the path of UCI's original in the user's cache, which has only files with the right checksum."""
    pooch = _import_extra("pooch")
    url = UCI_URL + table.url

    def receive(url: str, file: str, _: Any) -> None:
        try:
            pooch.HTTPDownloader()(url, file, None)
        except OSError as error:
            response = getattr(error, "response", None)
            reason = type(error).__name__ if response is None else f"HTTP status {response.status_code}"
            raise OSError(f"Could not download {url} ({reason}).") from error
        # Versions of these files differ in their line ends, and in whether the last line has one.
        Path(file).write_bytes(b"\n".join(_unpack(Path(file), table).splitlines()) + b"\n")

    try:
        # The checksum belongs to the unpacked file, so unpacking is a part of the download.
        cache = pooch.os_cache("corral")
        return Path(pooch.retrieve(url, table.sha256, table.original, cache, downloader=receive))
    except (ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        expected = f"{table.original} with the SHA-256 {table.sha256}"
        raise OSError(f"The download of {url} was deleted because it is not {expected}.") from error


def _unpack(received: Path, table: _DataFile) -> bytes:
    if table.url.endswith(".zip"):
        with zipfile.ZipFile(received) as archive:
            return archive.read(table.original)
    if table.url.endswith(".Z"):
        # The format of Unix compress, which the standard library cannot read.
        return bytes(_import_extra("unlzw3").unlzw(received))
    return received.read_bytes()


def _import_extra(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f'Loading data needs {name}: pip install "corral[data]".') from error

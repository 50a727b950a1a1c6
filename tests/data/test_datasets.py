"""Tests of corral.datasets: generators against the paper's formulas, loaders against UCI's tables."""

import gzip
import http.server
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pooch
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from corral import datasets
from corral.datasets import (
    load_anuran,
    load_optdigits,
    load_penguins,
    load_waveform,
    make_shifted_groups,
    make_ten_groups,
    make_waveform,
)

GENERATORS = [make_ten_groups, make_shifted_groups, make_waveform]

TABLES = ("anuran_mfcc.csv", "optdigits_train.csv", "optdigits_test.csv", "waveform_noise.csv")
SPECIES_COUNTS = {
    "AdenomeraAndre": 672,
    "AdenomeraHylaedactylus": 3478,
    "Ameeregatrivittata": 542,
    "HylaMinuta": 310,
    "HypsiboasCinerascens": 472,
    "HypsiboasCordobae": 1121,
    "LeptodactylusFuscus": 270,
    "OsteocephalusOophagus": 114,
    "Rhinellagranulosa": 68,
    "ScinaxRuber": 148,
}
PAPER_COUNTS = dict(list(SPECIES_COUNTS.items())[:7])
TRAIN_COUNTS = dict(enumerate([376, 389, 380, 389, 387, 376, 377, 387, 380, 382]))
TEST_COUNTS = dict(enumerate([178, 182, 177, 183, 181, 182, 181, 179, 174, 180]))
DIGITS_COUNTS = {digit: n + TEST_COUNTS[digit] for digit, n in TRAIN_COUNTS.items()}


def counts(labels):
    values, number = np.unique(labels, return_counts=True)
    return dict(zip(values.tolist(), number.tolist(), strict=True))


def assert_moments(X, mean, cov):
    """Compare with the first two moments at five standard errors, each entry with its own."""
    n = len(X)
    mean, cov = np.asarray(mean), np.asarray(cov)
    variance = np.diag(cov)
    assert np.all(np.abs(X.mean(axis=0) - mean) < 5 * np.sqrt(variance / n))
    # The variance of an empirical covariance is at most this for normal and for flatter distributions.
    error = np.sqrt((np.outer(variance, variance) + cov**2) / n)
    assert np.all(np.abs(np.cov(X, rowvar=False) - cov) < 5 * error)


# Generators


@pytest.mark.parametrize("make", GENERATORS)
def test_seed_fixes_samples(make):
    X, y = make(20, random_state=3)
    rng = np.random.RandomState(3)
    for seed in (3, rng):
        X_again, y_again = make(20, random_state=seed)
        assert_array_equal(X, X_again)
        assert_array_equal(y, y_again)
    for seed in (4, rng):  # a generator goes on
        assert not np.any(make(20, random_state=seed)[0] == X)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (make_ten_groups, [0.48964961914979194, 0.3626827975991283, 0.9795269293354586]),
        (make_shifted_groups, [-0.11651498407833566, 0.5680445610939323, 0.004695476192547066]),
        (make_waveform, [0.9500884175255894, -0.18351911481311256, -1.6760038063299767]),
    ],
)
def test_samples_of_a_seed_never_change(make, expected):
    # Published tables name their seed, so its samples are part of the interface.
    X, _ = make(2, random_state=0)
    assert_allclose([X[0, 0], X[1, 2], X[-1, -1]], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "labels", "n_default", "n_features"),
    [
        (make_ten_groups, range(1, 11), 150, 30),
        (make_shifted_groups, range(1, 6), 200, 10),
        (make_waveform, range(3), 100, 40),
        (partial(make_waveform, noise_features=0), range(3), 100, 21),
    ],
)
def test_shapes_and_labels(make, labels, n_default, n_features):
    for n, (X, y) in [(n_default, make()), (1, make(1))]:
        assert X.shape == (len(labels) * n, n_features)
        assert X.dtype == np.float64
        assert y.dtype == np.int64
        assert_array_equal(y, np.repeat(labels, n))


def test_ten_groups_follow_the_paper():
    X, y = make_ten_groups(2000, random_state=0)
    for group in range(1, 11):
        variance = np.full(30, 1 / 12)
        for i in range(group, group + 6):
            variance[i - 1] = (0.02 * (i - group + 1)) ** 2
        assert_moments(X[y == group], np.full(30, 0.5), np.diag(variance))
        uniform = np.delete(X[y == group], np.arange(group - 1, group + 5), axis=1)
        assert 0 <= uniform.min() < 0.01
        assert 0.99 < uniform.max() < 1


def test_shifted_groups_follow_the_paper():
    means = [(0, 0), (0.1635, 0.2044), (-0.2452, 0.1431), (-0.2180, -0.3815), (0.3815, -0.1907)]
    X, y = make_shifted_groups(4000, random_state=0)
    cov = np.diag([0.1**2, 0.2**2] + [1 / 12] * 8)
    for group, mean in enumerate(means, start=1):
        assert_moments(X[y == group], [*mean] + [0.5] * 8, cov)
    assert 0 <= X[:, 2:].min() < 0.01
    assert 0.99 < X[:, 2:].max() < 1
    X, y = make_shifted_groups(500, groups=np.array([5, 3]), random_state=0)  # in the order asked for
    assert_array_equal(y, [5] * 500 + [3] * 500)
    assert X[:500, 0].mean() > 0.3
    assert X[500:, 0].mean() < -0.2


def test_waveform_follows_breiman():
    position = np.arange(1, 22)
    wave = {peak: np.maximum(6 - np.abs(position - peak), 0) for peak in (7, 11, 15)}
    X, y = make_waveform(4000, random_state=0)
    for k, (a, b) in enumerate([(7, 15), (7, 11), (15, 11)]):
        mean, cov = np.zeros(40), np.eye(40)
        mean[:21] = (wave[a] + wave[b]) / 2
        # One uniform weight per sample, of variance 1/12, moves all 21 positions together.
        cov[:21, :21] += np.outer(wave[a] - wave[b], wave[a] - wave[b]) / 12
        assert_moments(X[y == k], mean, cov)


@pytest.mark.parametrize(
    ("make", "arguments", "error", "says"),
    [
        *[(make, {"n_per_class": 0}, ValueError, "n_per_class == 0") for make in GENERATORS],
        (make_ten_groups, {"n_per_class": 2.5}, TypeError, "n_per_class"),
        (make_waveform, {"noise_features": -1}, ValueError, "noise_features == -1"),
        (make_shifted_groups, {"groups": (1, 6)}, ValueError, "Unknown group 6"),
        (make_shifted_groups, {"groups": (1, 2, 1)}, ValueError, r"got \(1, 2, 1\)"),
        (make_shifted_groups, {"groups": ()}, ValueError, r"got \(\)"),
    ],
)
def test_generators_reject_wrong_arguments(make, arguments, error, says):
    with pytest.raises(error, match=says):
        make(**arguments)


def test_generators_need_no_extra():
    # Only a fresh interpreter shows what an import or a call really pulls in.
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['pooch'] = None\n"
        "from corral.datasets import make_ten_groups; print(make_ten_groups(2)[0].shape)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert run.stdout.split() == [b"(20,", b"30)"], run.stderr


# Loaders, from the tables in the folder named by CORRAL_DATA


@pytest.fixture(scope="session")
def tables():
    """The tables' bytes, uncompressed, by name."""
    folder = os.environ.get("CORRAL_DATA")
    if not folder:
        pytest.skip("CORRAL_DATA names no folder with UCI's tables")
    contents = {}
    for name in TABLES:
        plain, compressed = Path(folder, name), Path(folder, f"{name}.gz")
        if plain.is_file():
            contents[name] = plain.read_bytes()
        elif compressed.is_file():
            contents[name] = gzip.decompress(compressed.read_bytes())
        else:
            pytest.skip(f"the folder named by CORRAL_DATA has no {name}")
    return contents


@pytest.mark.parametrize(
    ("load", "table", "prefix", "expected", "facts"),
    [
        (partial(load_anuran, species="all"), "anuran_mfcc", "mfcc_", SPECIES_COUNTS, "Colonna.*C5CC9H"),
        (load_anuran, "anuran_mfcc", "mfcc_", PAPER_COUNTS, "Colonna.*C5CC9H"),
        (partial(load_optdigits, subset="train"), "optdigits_train", "p", TRAIN_COUNTS, "Alpaydin.*C50P49"),
        (partial(load_optdigits, subset="test"), "optdigits_test", "p", TEST_COUNTS, "Alpaydin.*C50P49"),
        (load_optdigits, "optdigits_train", "p", DIGITS_COUNTS, "Alpaydin.*C50P49"),
        (load_waveform, "waveform_noise", "x", {0: 1692, 1: 1653, 2: 1655}, "Breiman.*C56014"),
    ],
)
def test_loaders_return_what_the_tables_hold(tables, load, table, prefix, expected, facts):
    bunch = load()
    header, first, *_ = (line.split(",") for line in tables[f"{table}.csv"].decode().splitlines())
    row = dict(zip(header, first, strict=True))
    features = [column for column in header if column.startswith(prefix)]
    assert bunch.feature_names == features
    assert bunch.data.shape == (sum(expected.values()), len(features))
    assert bunch.data.dtype == np.float64
    assert_array_equal(bunch.data[0], [float(row[feature]) for feature in features])
    assert str(bunch.target[0]) == row.get("class", row.get("species"))
    assert bunch.target.dtype == np.array(list(expected)).dtype
    assert counts(bunch.target) == expected
    assert_array_equal(bunch.target_names, sorted(expected))
    assert re.search(f"{facts}.*CC BY 4.0", bunch.DESCR, re.DOTALL)
    assert all(Path(file).is_file() for file in bunch.get("filenames", [bunch.get("filename")]))
    data, target = load(return_X_y=True)
    assert_array_equal(data, bunch.data)
    assert_array_equal(target, bunch.target)


def test_waveform_generator_agrees_with_uci(tables):
    waves = load_waveform()
    X, y = make_waveform(5000, random_state=0)
    for k in range(3):
        theirs, ours = waves.data[waves.target == k], X[y == k]
        error = np.sqrt(theirs.var(axis=0) / len(theirs) + ours.var(axis=0) / len(ours))
        assert np.all(np.abs(theirs.mean(axis=0) - ours.mean(axis=0)) < 4.5 * error)
        # Standard deviations, within the noise of about 1700 rows, so the waves are mixed alike.
        assert_allclose(theirs.std(axis=0), ours.std(axis=0), rtol=0.09)


# Loaders, from a small folder


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A data folder with tiny tables of the right form, so that errors need no real data."""
    monkeypatch.delenv("CORRAL_DATA", raising=False)
    mfcc, pixels, waves = (
        ",".join(f"{prefix}{i}" for i in range(1, d + 1))
        for prefix, d in [("mfcc_", 22), ("p", 64), ("x", 40)]
    )
    frogs = ["Hylidae,Scinax,ScinaxRuber,60", "Hylidae,Dendropsophus,HylaMinuta,7"]
    for name, lines in {
        "anuran_mfcc": [f"{mfcc},family,genus,species,record_id", *("0.5," * 22 + frog for frog in frogs)],
        "optdigits_train": [f"{pixels},class", "1," * 64 + "4", "2," * 64 + "9"],
        "optdigits_test": [f"{pixels},class", "3," * 64 + "0"],
        "waveform_noise": [f"{waves},class", "-.5e-1," * 40 + "2"],
    }.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_small_tables_are_read_as_written(small):
    digits = load_optdigits(data_home=small)
    assert_array_equal(digits.data, np.repeat([[1], [2], [3]], 64, axis=1))
    assert_array_equal(digits.target, [4, 9, 0])
    assert digits.filenames == [str(small / "optdigits_train.csv"), str(small / "optdigits_test.csv")]
    frogs = load_anuran(species="all", data_home=str(small))
    assert_array_equal(frogs.record_id, [60, 7])
    assert_array_equal(frogs.genus, ["Scinax", "Dendropsophus"])
    assert_array_equal(load_anuran(data_home=small).target, ["HylaMinuta"])
    assert_array_equal(load_anuran(species="ScinaxRuber", data_home=small).record_id, [60])
    two = load_anuran(species=["ScinaxRuber", "HylaMinuta"], data_home=small)
    assert_array_equal(two.target_names, ["HylaMinuta", "ScinaxRuber"])
    assert_array_equal(two.family, frogs.family)
    assert_array_equal(load_waveform(data_home=small).data, np.full((1, 40), -0.05))


def test_data_home_comes_before_the_variable_and_either_may_be_compressed(small, tmp_path, monkeypatch):
    other = tmp_path / "other" / "waveform_noise.csv.gz"
    other.parent.mkdir()
    other.write_bytes(gzip.compress((small / "waveform_noise.csv").read_bytes()))
    monkeypatch.setenv("CORRAL_DATA", str(other.parent))
    compressed, plain = load_waveform(), load_waveform(data_home=small)
    assert compressed.filename == str(other)
    assert plain.filename == str(small / "waveform_noise.csv")
    assert_array_equal(compressed.data, plain.data)


@pytest.mark.parametrize(
    ("load", "arguments", "says"),
    [
        (load_anuran, {"species": "papers"}, f"Unknown species 'papers'.*{', '.join(SPECIES_COUNTS)}"),
        (load_anuran, {"species": ["HylaMinuta", "Kermit"]}, "Unknown species 'Kermit'"),
        (load_anuran, {"species": ("all",)}, "Unknown species 'all'"),
        (load_anuran, {"species": []}, r"at least one species, got \[\]"),
        (load_optdigits, {"subset": "validation"}, "got 'validation'"),
    ],
)
def test_loaders_reject_wrong_arguments(small, load, arguments, says):
    with pytest.raises(ValueError, match=says):
        load(**arguments, data_home=small)


@pytest.mark.parametrize("folder", ["", "missing"])
@pytest.mark.parametrize(
    ("load", "table"),
    [(load_anuran, "anuran_mfcc"), (load_optdigits, "optdigits_train"), (load_waveform, "waveform_noise")],
)
def test_missing_table(tmp_path, monkeypatch, folder, load, table):
    home = str(tmp_path / folder)
    monkeypatch.setenv("CORRAL_DATA", home)
    for arguments in ({}, {"data_home": home}):
        with pytest.raises(FileNotFoundError, match=f"no {table}.csv or .* {re.escape(home)}"):
            load(**arguments)


@pytest.mark.parametrize(
    ("line", "old", "new", "says"),
    [
        (1, "mfcc_2,", "mfcc_two,", "^Line 1 of {path} is not the header"),
        (1, "mfcc_2,", "", "^{path} cannot .* line 2"),
        (2, ",60", "", "^Line 2 of {path}, column record_id: '' is not"),
        (3, "Hyl", "0.5,Hyl", "^{path} cannot .* line 3"),
        (2, ".*", "", "^Line 2 of {path}, column mfcc_1: '' is not"),
        (3, "0.5,Hyl", "O.5,Hyl", "^Line 3 of {path}, column mfcc_22: 'O.5' is not a number"),
        *[
            (2, "^0.5", cell, f"^Line 2 of {{path}}, column mfcc_1: '{cell}' is not a number")
            for cell in ("nan", "NA", "inf", "1e999", "")
        ],
        (3, "Dendropsophus", "", "^Line 3 of {path}, column genus: '' is not a name"),
        (3, "HylaM", "Hyla\xff", "^Line 3 of {path}, column species: 'Hyla.*' is not a name"),
        *[
            (3, ",7", f",{cell}", f"^Line 3 of {{path}}, column record_id: '{cell}' is not a whole")
            for cell in ("7O", "0.5", "9" * 20)
        ],
    ],
)
def test_damaged_line(small, line, old, new, says):
    path = small / "anuran_mfcc.csv"
    lines = path.read_text().splitlines()
    lines[line - 1], n = re.subn(old, new, lines[line - 1], count=1)
    assert n == 1
    path.write_text("\n".join(lines), encoding="latin-1")
    with pytest.raises(ValueError, match=says.format(path=re.escape(str(path)))):
        load_anuran(data_home=small)


@pytest.mark.parametrize(
    ("end", "damage", "says"),
    [
        ("", lambda content: b"", "^{path} cannot be read"),
        ("", lambda content: content.splitlines()[0], "^Line 2 of {path} is missing"),
        (".gz", lambda content: content, "^{path} cannot be read"),
        (".gz", lambda content: gzip.compress(content)[:-9], "^{path} cannot be read"),
        (".gz", lambda content: gzip.compress(content)[:10] + b"\xff" * 9, "^{path} cannot be read"),
    ],
)
def test_damaged_file(small, end, damage, says):
    plain = small / "waveform_noise.csv"
    path = Path(f"{plain}{end}")
    content = plain.read_bytes()
    plain.unlink()
    path.write_bytes(damage(content))
    with pytest.raises(ValueError, match=says.format(path=re.escape(str(path)))):
        load_waveform(data_home=small)


# Download, from a local server

ANURAN, WAVEFORM = "00406/Anuran Calls (MFCCs).zip", "waveform/waveform-+noise.data.Z"
TRAIN, TEST = "optdigits/optdigits.tra", "optdigits/optdigits.tes"


def compress(content):
    """Pack as Unix compress does (.Z): 9 bits for each byte, and 256 forgets all before codes get longer."""
    codes = [code for i in range(0, len(content), 255) for code in (*content[i : i + 255], 256)][:-1]
    bits = np.array(codes)[:, np.newaxis] >> np.arange(9) & 1
    return b"\x1f\x9d\x90" + np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()


def zipped(name, content):
    """An archive with the same bytes whenever it is made: names of tests are made of them."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(zipfile.ZipInfo("Readme.txt"), "Anuran calls")
        file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


@pytest.fixture(scope="session")
def originals(tables):
    """UCI's files as its server sends them, by path."""
    body = {name: content.split(b"\n", 1)[1] for name, content in tables.items()}
    header = ",".join(f"MFCCs_{i:2d}" for i in range(1, 23)) + ",Family,Genus,Species,RecordID\n"
    return {
        ANURAN: zipped("Frogs_MFCCs.csv", header.encode() + body["anuran_mfcc.csv"]),
        TRAIN: body["optdigits_train.csv"],
        TEST: body["optdigits_test.csv"],
        WAVEFORM: compress(body["waveform_noise.csv"]),
    }


@pytest.fixture
def uci(tmp_path, monkeypatch):
    """The empty folder of a local UCI, beside an empty cache; nothing in the environment interferes."""
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(variable, "127.0.0.1")
    monkeypatch.delenv("CORRAL_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "uci")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setattr(datasets, "UCI_URL", f"http://127.0.0.1:{server.server_port}/")
        yield tmp_path / "uci"
        server.shutdown()
        thread.join()


def publish(uci, path, content):
    (uci / path).parent.mkdir(parents=True, exist_ok=True)
    (uci / path).write_bytes(content)


def cached(uci):
    return sorted(path.name for path in (uci.parent / "cache" / "corral").iterdir())


@pytest.mark.parametrize(
    ("load", "names"),
    [
        (load_anuran, ["Frogs_MFCCs.csv"]),
        (load_optdigits, ["optdigits.tes", "optdigits.tra"]),
        (load_waveform, ["waveform-+noise.data"]),
    ],
)
def test_download_equals_folder(tables, originals, uci, load, names):
    for path, content in originals.items():
        publish(uci, path, content)
    for name, content in tables.items():
        (uci / name).write_bytes(content)
    downloaded, local = load(), load(data_home=uci)
    assert downloaded.keys() == local.keys()
    for field in downloaded.keys() - {"filename", "filenames"}:
        assert_array_equal(downloaded[field], local[field])
    assert cached(uci) == names
    shutil.rmtree(uci)  # from here on there is only the cache
    assert_array_equal(load().data, downloaded.data)


@pytest.mark.parametrize("send", [bytes, lambda text: text.replace(b"\n", b"\r\n"), bytes.rstrip])
def test_download_accepts_other_line_ends_and_repairs_the_cache(originals, uci, send):
    publish(uci, TEST, send(originals[TEST]))
    for _ in range(2):
        downloaded = load_optdigits(subset="test")
        assert_array_equal(downloaded.target, load_digits().target)
        path = Path(downloaded.filenames[0])
        assert path.read_bytes() == originals[TEST]
        path.write_bytes(originals[TEST][:-100])


@pytest.mark.parametrize(
    ("load", "path", "content"),
    [
        (load_optdigits, TRAIN, b"0,1,6\n"),
        (load_optdigits, TRAIN, b""),
        (load_anuran, ANURAN, zipped("Frogs_MFCCs.csv", b"1,2\n")),
        (load_anuran, ANURAN, zipped("Frogs.csv", b"1,2\n")),
        (load_anuran, ANURAN, b"<html>"),
        (load_waveform, WAVEFORM, compress(b"0.5,1\n" * 9)),
        (load_waveform, WAVEFORM, b"<html>"),
    ],
)
def test_wrong_download_leaves_nothing(uci, load, path, content):
    publish(uci, path, content)
    with pytest.raises(OSError, match=r"^The download of http://127.* was deleted .*[0-9a-f]{64}\.$"):
        load()
    assert cached(uci) == []


def test_failed_download_says_why(uci, monkeypatch):
    with pytest.raises(OSError, match=r"^Could not download http://.*/optdigits.tra \(HTTP status 404\).$"):
        load_optdigits()
    with socket.socket() as deaf:  # it has a port, which nobody else can get, but does not listen
        deaf.bind(("127.0.0.1", 0))
        monkeypatch.setattr(datasets, "UCI_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}/")
        with pytest.raises(OSError, match=r"^Could not .*/optdigits.tra \(ConnectionError\).$"):
            load_optdigits()
    assert cached(uci) == []


@pytest.mark.parametrize("package", ["pandas", "pooch", "unlzw3"])
def test_loaders_name_the_extra(small, uci, monkeypatch, package):
    publish(uci, WAVEFORM, compress(b"0.5\n"))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'needs {package}: pip install "corral\[data\]"'):
        load_waveform(data_home=small if package == "pandas" else None)


# Penguins


def test_penguins_are_those_of_the_package():
    penguins = load_penguins()
    table = penguins.data
    assert table.columns.tolist() == penguins.feature_names
    assert table.isna().sum().tolist() == [0, 2, 2, 2, 2, 11, 0]
    assert counts(penguins.target) == {"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}
    assert table.iloc[0].tolist() == ["Torgersen", 39.1, 18.7, 181.0, 3750.0, "male", 2007]
    assert table["body_mass_g"].mean() == pytest.approx(4201.754386)  # as published
    assert "CC0" in penguins.DESCR
    X, y = load_penguins(return_X_y=True)
    assert X.equals(table)
    assert_array_equal(y, penguins.target)
    assert "palmerpenguins" not in sys.modules


def test_other_penguins_are_refused(tmp_path, monkeypatch):
    (tmp_path / "palmerpenguins" / "data").mkdir(parents=True)
    (tmp_path / "palmerpenguins" / "__init__.py").write_text("raise RuntimeError")
    path = tmp_path / "palmerpenguins" / "data" / "penguins.csv"
    content = Path(load_penguins().filename).read_bytes()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    path.write_bytes(content.replace(b"\n", b"\r\n"))  # as one release has it
    assert load_penguins().filename == str(path)
    path.write_bytes(content.replace(b"39.1", b"93.1"))
    with pytest.raises(ValueError, match="is not the table of penguins with the SHA-256"):
        load_penguins()
    path.parent.parent.rename(tmp_path / "gone")
    with pytest.raises(ImportError, match=r'needs palmerpenguins: pip install "corral\[data\]"'):
        load_penguins()

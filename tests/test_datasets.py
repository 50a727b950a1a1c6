"""Tests of corral.datasets: generators against the paper's formulas, loaders against UCI's tables."""

import gzip
import hashlib
import http.server
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.parse
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from corral import datasets
from corral.datasets import (
    load_anuran,
    load_optdigits,
    load_waveform,
    make_shifted_groups,
    make_ten_groups,
    make_waveform,
)

GENERATORS = [make_ten_groups, make_shifted_groups, make_waveform]

# SHA-256 of each table, uncompressed, as recorded when the tables were made from UCI's files.
TABLES = {
    "anuran_mfcc.csv": "6d5910e308d3a50e0ec5a7867ac01f810abbfd88499269a1e278638ce9f1053a",
    "optdigits_train.csv": "224cce16f9b126940c88fc7e9095c2b69950c32d852e2111ca231907dea5b16b",
    "optdigits_test.csv": "39a0ba76d0a979b29ee39bffd381c38b0fbdfb8811b58590b16f0a89e3e25e6f",
    "waveform_noise.csv": "29d4b3e0a1846e4b84d0defe69d09567b1094c2adb896e0972603e1d08ea61da",
}
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
NOT_IN_PAPER = {"OsteocephalusOophagus", "Rhinellagranulosa", "ScinaxRuber"}
TRAIN_COUNTS = [376, 389, 380, 389, 387, 376, 377, 387, 380, 382]
TEST_COUNTS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


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
    again, y_again = make(20, random_state=3)
    from_generator, y_from_generator = make(20, random_state=np.random.RandomState(3))
    assert_array_equal(X, again)
    assert_array_equal(X, from_generator)
    assert_array_equal(y, y_again)
    assert_array_equal(y, y_from_generator)
    assert not np.any(make(20, random_state=4)[0] == X)


@pytest.mark.parametrize("make", GENERATORS)
def test_generator_state_advances(make):
    rng = np.random.RandomState(3)
    assert not np.any(make(20, random_state=rng)[0] == make(20, random_state=rng)[0])


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
    ],
)
def test_shapes_and_labels(make, labels, n_default, n_features):
    X, y = make()
    assert X.shape == (len(labels) * n_default, n_features)
    assert X.dtype == np.float64
    assert np.issubdtype(y.dtype, np.integer)
    assert_array_equal(y, np.repeat(labels, n_default))
    X, y = make(1)
    assert X.shape == (len(labels), n_features)
    assert_array_equal(y, labels)


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
    table = {
        1: (0.0, 0.0),
        2: (0.1635, 0.2044),
        3: (-0.2452, 0.1431),
        4: (-0.2180, -0.3815),
        5: (0.3815, -0.1907),
    }
    X, y = make_shifted_groups(4000, random_state=0)
    cov = np.diag([0.1**2, 0.2**2] + [1 / 12] * 8)
    for group, mean in table.items():
        assert_moments(X[y == group], [*mean] + [0.5] * 8, cov)
    assert 0 <= X[:, 2:].min() < 0.01
    assert 0.99 < X[:, 2:].max() < 1


def test_shifted_groups_keep_the_order_asked_for():
    X, y = make_shifted_groups(500, groups=(5, 3), random_state=0)
    assert_array_equal(y, [5] * 500 + [3] * 500)
    assert X[:500, 0].mean() > 0.3
    assert X[500:, 0].mean() < -0.2
    X, y = make_shifted_groups(3, groups=np.array([2]), random_state=0)
    assert_array_equal(y, [2, 2, 2])


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


@pytest.mark.parametrize("noise_features", [0, 3])
def test_waveform_noise_features(noise_features):
    X, _ = make_waveform(5, noise_features=noise_features, random_state=0)
    assert X.shape == (15, 21 + noise_features)


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("n", [0, -7])
def test_generators_reject_too_few_samples(make, n):
    with pytest.raises(ValueError, match=f"n_per_class == {n}"):
        make(n)


def test_generators_reject_other_arguments():
    with pytest.raises(ValueError, match="noise_features == -1"):
        make_waveform(noise_features=-1)
    with pytest.raises(ValueError, match="Unknown group 6"):
        make_shifted_groups(groups=(1, 6))
    with pytest.raises(ValueError, match=r"got \(1, 2, 1\)"):
        make_shifted_groups(groups=(1, 2, 1))
    with pytest.raises(ValueError, match=r"got \(\)"):
        make_shifted_groups(groups=())
    with pytest.raises(TypeError, match="n_per_class"):
        make_ten_groups(2.5)


# Loaders, from the tables in the folder named by CORRAL_DATA


@pytest.fixture(scope="session")
def tables():
    """The tables' bytes, uncompressed, by name."""
    folder = os.environ.get("CORRAL_DATA")
    if not folder:
        pytest.skip("CORRAL_DATA names no folder with UCI's tables")
    found = {}
    for name in TABLES:
        plain, compressed = Path(folder, name), Path(folder, f"{name}.gz")
        if plain.is_file():
            found[name] = plain.read_bytes()
        elif compressed.is_file():
            found[name] = gzip.decompress(compressed.read_bytes())
        else:
            pytest.skip(f"the folder named by CORRAL_DATA has no {name}")
    return found


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A data folder with tiny tables of the right form, so that errors need no real data."""
    monkeypatch.delenv("CORRAL_DATA", raising=False)
    mfcc = ",".join(["0.5"] * 22)
    write(
        tmp_path / "anuran_mfcc.csv",
        ",".join(datasets._ANURAN.columns),
        f"{mfcc},Hylidae,Scinax,ScinaxRuber,60",
        f"{mfcc},Hylidae,Dendropsophus,HylaMinuta,7",
    )
    pixels = ",".join(f"p{i}" for i in range(1, 65))
    write(tmp_path / "optdigits_train.csv", f"{pixels},class", "1," * 64 + "4", "2," * 64 + "9")
    write(tmp_path / "optdigits_test.csv", f"{pixels},class", "3," * 64 + "0")
    write(
        tmp_path / "waveform_noise.csv",
        ",".join(f"x{i}" for i in range(1, 41)) + ",class",
        "-0.5," * 40 + "2",
    )
    return tmp_path


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))


def test_tables_are_the_ones_on_record(tables):
    assert {name: hashlib.sha256(content).hexdigest() for name, content in tables.items()} == TABLES


def test_anuran_all(tables):
    frogs = load_anuran(species="all")
    assert frogs.data.shape == (7195, 22)
    assert frogs.data.dtype == np.float64
    assert counts(frogs.target) == SPECIES_COUNTS
    assert all(isinstance(name, str) for name in frogs.target)
    assert_array_equal(frogs.target_names, sorted(SPECIES_COUNTS))
    assert frogs.feature_names == [f"mfcc_{i}" for i in range(1, 23)]
    assert counts(frogs.family) == {
        "Leptodactylidae": 4420,
        "Hylidae": 2165,
        "Dendrobatidae": 542,
        "Bufonidae": 68,
    }
    assert counts(frogs.genus)["Hypsiboas"] == 1593
    assert np.issubdtype(frogs.record_id.dtype, np.integer)
    assert_array_equal(np.unique(frogs.record_id), np.arange(1, 61))
    assert np.mean(frogs.data[:, 0] == 1) == pytest.approx(0.966, abs=5e-4)
    # The first row, cell by cell, against the text of the table.
    cells = tables["anuran_mfcc.csv"].decode().splitlines()[1].split(",")
    assert_array_equal(frogs.data[0], [float(cell) for cell in cells[:22]])
    assert [frogs.family[0], frogs.genus[0], frogs.target[0], str(frogs.record_id[0])] == cells[22:]
    for fact in ("Colonna", "10.24432/C5CC9H", "CC BY 4.0"):
        assert fact in frogs.DESCR
    assert Path(frogs.filename).is_file()


def test_anuran_species(tables):
    every = load_anuran(species="all")
    paper = load_anuran()
    kept = ~np.isin(every.target, list(NOT_IN_PAPER))
    assert counts(paper.target) == {k: n for k, n in SPECIES_COUNTS.items() if k not in NOT_IN_PAPER}
    assert_array_equal(paper.target_names, sorted(set(SPECIES_COUNTS) - NOT_IN_PAPER))
    for field in ("data", "target", "family", "genus", "record_id"):
        assert_array_equal(paper[field], every[field][kept])
    two = load_anuran(species=["ScinaxRuber", "HylaMinuta"])
    assert counts(two.target) == {"HylaMinuta": 310, "ScinaxRuber": 148}
    assert_array_equal(two.target_names, ["HylaMinuta", "ScinaxRuber"])


@pytest.mark.parametrize(
    ("subset", "expected"),
    [
        ("train", TRAIN_COUNTS),
        ("test", TEST_COUNTS),
        ("all", np.add(TRAIN_COUNTS, TEST_COUNTS)),
    ],
)
def test_optdigits(tables, subset, expected):
    digits = load_optdigits(subset=subset)
    assert digits.data.shape == (sum(expected), 64)
    assert digits.data.dtype == np.float64
    assert (digits.data.min(), digits.data.max()) == (0, 16)
    assert np.issubdtype(digits.target.dtype, np.integer)
    assert_array_equal(np.bincount(digits.target), expected)
    assert_array_equal(digits.target_names, np.arange(10))
    assert digits.feature_names == [f"p{i}" for i in range(1, 65)]
    for fact in ("Alpaydin", "10.24432/C50P49", "CC BY 4.0"):
        assert fact in digits.DESCR
    assert all(Path(name).is_file() for name in digits.filenames)
    assert len(digits.filenames) == (2 if subset == "all" else 1)


def test_optdigits_order_and_content(tables):
    train, test, both = (load_optdigits(subset=subset) for subset in ("train", "test", "all"))
    assert_array_equal(both.data, np.vstack([train.data, test.data]))
    assert_array_equal(both.target, np.hstack([train.target, test.target]))
    reference = load_digits()
    assert_array_equal(test.data, reference.data)
    assert_array_equal(test.target, reference.target)


def test_waveform(tables):
    waves = load_waveform()
    assert waves.data.shape == (5000, 40)
    assert waves.data.dtype == np.float64
    assert np.issubdtype(waves.target.dtype, np.integer)
    assert counts(waves.target) == {0: 1692, 1: 1653, 2: 1655}
    assert_array_equal(waves.target_names, np.arange(3))
    assert waves.feature_names == [f"x{i}" for i in range(1, 41)]
    assert_array_equal(waves.data[0, :3], [-0.23, -1.21, 1.20])
    assert waves.target[0] == 2
    for fact in ("Breiman", "10.24432/C56014", "CC BY 4.0"):
        assert fact in waves.DESCR
    assert Path(waves.filename).is_file()


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


def test_return_data_and_target(small):
    for load in (load_anuran, load_optdigits, load_waveform):
        bunch = load(data_home=small)
        data, target = load(data_home=small, return_X_y=True)
        assert_array_equal(data, bunch.data)
        assert_array_equal(target, bunch.target)


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


def test_compressed_or_plain(small):
    plain = load_waveform(data_home=small)
    path = small / "waveform_noise.csv"
    Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    compressed = load_waveform(data_home=small)
    assert compressed.filename == f"{path}.gz"
    assert_array_equal(compressed.data, plain.data)


def test_data_home_comes_before_the_variable(small, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    shutil.copy(small / "waveform_noise.csv", other)
    monkeypatch.setenv("CORRAL_DATA", str(other))
    assert load_waveform().filename == str(other / "waveform_noise.csv")
    assert load_waveform(data_home=small).filename == str(small / "waveform_noise.csv")


@pytest.mark.parametrize(
    ("species", "name"), [("papers", "papers"), (["HylaMinuta", "Kermit"], "Kermit"), (("all",), "all")]
)
def test_unknown_species(small, species, name):
    with pytest.raises(ValueError, match=f"Unknown species '{name}'") as caught:
        load_anuran(species=species, data_home=small)
    assert all(known in str(caught.value) for known in SPECIES_COUNTS)


def test_other_wrong_arguments(small):
    with pytest.raises(ValueError, match=r"at least one species, got \[\]"):
        load_anuran(species=[], data_home=small)
    with pytest.raises(ValueError, match="got 'validation'"):
        load_optdigits(subset="validation", data_home=small)


@pytest.mark.parametrize("by_variable", [False, True])
@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_missing_table(tmp_path, monkeypatch, by_variable, folder):
    monkeypatch.delenv("CORRAL_DATA", raising=False)
    (tmp_path / "empty").mkdir()
    home = str(tmp_path / folder)
    if by_variable:
        monkeypatch.setenv("CORRAL_DATA", home)
    for load, name in [
        (load_anuran, "anuran_mfcc.csv"),
        (load_optdigits, "optdigits_train.csv"),
        (load_waveform, "waveform_noise.csv"),
    ]:
        with pytest.raises(FileNotFoundError) as caught:
            load() if by_variable else load(data_home=home)
        assert name in str(caught.value)
        assert home in str(caught.value)


@pytest.mark.parametrize(
    ("line", "text", "says"),
    [
        (1, "a,b,c", " is not the header mfcc_1"),
        (2, "0.5," * 22 + "Hylidae,Scinax,ScinaxRuber", " has 25 instead of 26 columns."),
        (3, "0.5," * 23 + "Hylidae,Scinax,ScinaxRuber,60", " has 27 instead of 26 columns."),
        (2, "", " has 1 instead of 26 columns."),
        (3, "0.5," * 21 + "O.5,Hylidae,Scinax,ScinaxRuber,60", ", column mfcc_22: .*'O.5'"),
        (2, "nan," + "0.5," * 21 + "Hylidae,Scinax,ScinaxRuber,60", ", column mfcc_1: .*'nan'"),
        (2, "," + "0.5," * 21 + "Hylidae,Scinax,ScinaxRuber,60", ", column mfcc_1: .*''"),
        (3, "0.5," * 22 + "Hylidae,,ScinaxRuber,60", ", column genus: .*''"),
        (3, "0.5," * 22 + "Hylidae,Scinax,Scinax\xff,60", ", column species: .*'Scinax"),
        (3, "0.5," * 22 + "Hylidae,Scinax,ScinaxRuber,6O", ", column record_id: .*'6O'"),
    ],
)
def test_damaged_line(small, line, text, says):
    path = small / "anuran_mfcc.csv"
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines), encoding="latin-1")
    with pytest.raises(ValueError, match=f"^Line {line} of {re.escape(str(path))}{says}"):
        load_anuran(data_home=small)


def test_damaged_class(small):
    path = small / "optdigits_test.csv"
    path.write_text(path.read_text().replace(",0\n", ",0.5\n"))
    with pytest.raises(ValueError, match=r"^Line 2 of .*optdigits_test\.csv, column class: .*'0\.5'"):
        load_optdigits(data_home=small)


def test_damaged_file(small):
    path = small / "waveform_noise.csv"
    content = path.read_bytes()
    for damaged, line in [(b"", 1), (content.splitlines()[0], 2)]:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"^Line {line} of {re.escape(str(path))} is missing"):
            load_waveform(data_home=small)
    path.unlink()
    packed = gzip.compress(content)
    for damaged in (content, packed[:-9], packed[:20] + b"\xff\xff" + packed[22:]):
        Path(f"{path}.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"^Line \d of {re.escape(str(path))}\.gz cannot be read: "):
            load_waveform(data_home=small)


def test_pandas_is_not_needed(small):
    # Only a fresh interpreter shows what an import or a call really pulls in.
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['pooch'] = None\n"
        "from corral.datasets import load_anuran, load_optdigits, load_waveform, make_ten_groups\n"
        "make_ten_groups(2)\n"
        "for load in (load_anuran, load_optdigits, load_waveform):\n"
        f"    print(load(data_home={str(small)!r}).data.shape)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == ["(1, 22)", "(3, 64)", "(1, 40)"], run.stderr


# Download, from a local server


def compress(content):
    """Pack as Unix compress does (.Z), without ever emptying the dictionary."""
    packed = bytearray(b"\x1f\x9d\x90")  # magic number, then: codes of at most 16 bits, 256 is reserved
    codes = {bytes([i]): i for i in range(256)}
    free, width = 257, 9
    group = n_codes = 0  # eight codes are written together

    def put(code):
        nonlocal group, n_codes, width
        group |= code << (n_codes * width)
        n_codes += 1
        wider = free > (1 << width) - 1 and width < 16
        if n_codes == 8 or wider:
            packed.extend(group.to_bytes(width, "little"))
            group = n_codes = 0
        width += wider

    known = b""
    for i in range(len(content)):
        longer = known + content[i : i + 1]
        if longer in codes:
            known = longer
            continue
        put(codes[known])
        if free < 1 << 16:
            codes[longer] = free
            free += 1
        known = content[i : i + 1]
    put(codes[known])
    packed.extend(group.to_bytes(width, "little")[: -(-n_codes * width // 8)])
    return bytes(packed)


def zipped(name, content):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("Readme.txt", "Anuran calls")
        file.writestr(name, content)
    return archive.getvalue()


@pytest.fixture(scope="session")
def originals(tables):
    """UCI's files as its server sends them, by path."""
    body = {name: content.split(b"\n", 1)[1] for name, content in tables.items()}
    header = ",".join(f"MFCCs_{i:2d}" for i in range(1, 23)) + ",Family,Genus,Species,RecordID\n"
    return {
        "/00406/Anuran Calls (MFCCs).zip": zipped(
            "Frogs_MFCCs.csv", header.encode() + body["anuran_mfcc.csv"]
        ),
        "/optdigits/optdigits.tra": body["optdigits_train.csv"],
        "/optdigits/optdigits.tes": body["optdigits_test.csv"],
        "/waveform/waveform-+noise.data.Z": compress(body["waveform_noise.csv"]),
    }


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {}
        self.requests = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = urllib.parse.unquote(self.path)
        self.server.requests.append(path)
        content = self.server.files.get(path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *args):
        pass  # keep the test report clean


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A local UCI without files, an empty cache, and nothing in the environment that could interfere."""
    pooch = pytest.importorskip("pooch")
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(variable, "127.0.0.1")
    monkeypatch.delenv("CORRAL_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    with Server() as local:
        thread = threading.Thread(target=local.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setattr(datasets, "UCI_URL", f"http://127.0.0.1:{local.server_port}/")
        yield local
        local.shutdown()
        thread.join()


def cached(tmp_path):
    return sorted(str(path.relative_to(tmp_path / "cache")) for path in (tmp_path / "cache").rglob("*"))


@pytest.mark.parametrize(
    ("load", "names"),
    [
        (load_anuran, ["Frogs_MFCCs.csv"]),
        (load_optdigits, ["optdigits.tes", "optdigits.tra"]),
        (load_waveform, ["waveform-+noise.data"]),
    ],
)
def test_download_equals_folder(tables, originals, server, tmp_path, load, names):
    if load is load_waveform:
        pytest.importorskip("unlzw3")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, content in tables.items():
        (folder / name).write_bytes(content)
    server.files = originals

    downloaded = load()
    local = load(data_home=folder)
    assert downloaded.keys() == local.keys()
    for field in downloaded.keys() - {"filename", "filenames"}:
        assert_array_equal(downloaded[field], local[field])
    assert cached(tmp_path) == ["corral", *(f"corral/{name}" for name in names)]
    assert len(server.requests) == len(names)

    again = load()
    assert_array_equal(again.data, downloaded.data)
    assert len(server.requests) == len(names)


def test_download_repairs_the_cache(originals, server, tmp_path):
    server.files = originals
    path = Path(load_optdigits(subset="test").filenames[0])
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    assert len(load_optdigits(subset="test").target) == 1797
    assert path.read_bytes() == content
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "damage", [lambda text: text.replace(b"\n", b"\r\n"), lambda text: text.rstrip(b"\n")]
)
def test_download_accepts_other_line_ends(originals, server, damage):
    original = originals["/optdigits/optdigits.tes"]
    server.files = {"/optdigits/optdigits.tes": damage(original)}
    downloaded = load_optdigits(subset="test")
    assert_array_equal(downloaded.target, load_digits().target)
    assert Path(downloaded.filenames[0]).read_bytes() == original


@pytest.mark.parametrize(
    ("load", "path", "content", "says"),
    [
        (load_optdigits, "/optdigits/optdigits.tra", b"0,1,6\n", "SHA-256"),
        (load_optdigits, "/optdigits/optdigits.tra", b"", "SHA-256"),
        (load_anuran, "/00406/Anuran Calls (MFCCs).zip", zipped("Frogs_MFCCs.csv", b"1,2\n"), "SHA-256"),
        (load_anuran, "/00406/Anuran Calls (MFCCs).zip", zipped("Frogs.csv", b"1,2\n"), "unpack"),
        (load_anuran, "/00406/Anuran Calls (MFCCs).zip", b"<html>", "unpack"),
        (load_waveform, "/waveform/waveform-+noise.data.Z", compress(b"0.5,1\n" * 9), "SHA-256"),
        (load_waveform, "/waveform/waveform-+noise.data.Z", b"<html>", "unpack"),
    ],
)
def test_wrong_download_leaves_nothing(server, tmp_path, load, path, content, says):
    if load is load_waveform:
        pytest.importorskip("unlzw3")
    server.files = {path: content}
    with pytest.raises(OSError, match=says) as caught:
        load()
    assert datasets.UCI_URL in str(caught.value)
    assert cached(tmp_path) == ["corral"]


def test_wrong_download_names_both_checksums(server):
    server.files = {"/optdigits/optdigits.tra": b"0,1,6\n"}
    received = hashlib.sha256(b"0,1,6\n").hexdigest()
    with pytest.raises(OSError, match=rf"{received} instead of {datasets._OPTDIGITS[0].sha256}\.$"):
        load_optdigits()


def test_download_not_found(server, tmp_path):
    with pytest.raises(
        OSError, match=r"Could not download http://127.*/optdigits\.tra \(HTTP status 404\)\.$"
    ):
        load_optdigits()
    assert cached(tmp_path) == ["corral"]


def test_download_unreachable(server, tmp_path, monkeypatch):
    with socket.socket() as deaf:  # it has a port, which nobody else can get, but does not listen
        deaf.bind(("127.0.0.1", 0))
        monkeypatch.setattr(datasets, "UCI_URL", f"http://127.0.0.1:{deaf.getsockname()[1]}/")
        with pytest.raises(
            OSError, match=r"Could not download http://127.*/optdigits\.tra \(ConnectionError\)\.$"
        ):
            load_optdigits()
    assert cached(tmp_path) == ["corral"]


@pytest.mark.parametrize(("load", "package"), [(load_optdigits, "pooch"), (load_waveform, "unlzw3")])
def test_download_without_extra(server, tmp_path, monkeypatch, load, package):
    server.files = {"/waveform/waveform-+noise.data.Z": compress(b"0.5\n")}
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'needs {package}: pip install "corral\[data\]"'):
        load()


def test_compress_is_what_gzip_reads(originals):
    # The encoder of this test must not only suit the decoder that the library uses.
    if shutil.which("gzip") is None:
        pytest.skip("no gzip program")
    packed = originals["/waveform/waveform-+noise.data.Z"]
    unpacked = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout
    assert hashlib.sha256(unpacked).hexdigest() == datasets._WAVEFORM.sha256

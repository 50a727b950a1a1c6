"""Tests of the report in a real browser: no network, the library's numbers, answers to mouse and keys.

They need Debian's chromium and chromium-driver, and are skipped with this reason where these are missing.
So is the check of accessibility where there is no axe-core, which `make axe` fetches.
"""

import base64
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from selenium import webdriver
from selenium.common.exceptions import (
    NoSuchElementException,
    StaleElementReferenceException,
    WebDriverException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import confusion_matrix

from corral import HeldOut, LSPClassifier, RodeoClassifier, estimate_sample_sizes, write_report
from corral.datasets import load_penguins, make_ten_groups
from corral.parallel import Computation
from corral.sentences.rows import REASONS_TO_LOOK

AXE = Path(__file__).parents[2] / "build" / "axe" / "package" / "axe.min.js"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="chromium and chromedriver are not installed (on Debian: chromium, chromium-driver)",
)

PATIENCE = 120  # seconds, for a machine on which many other programs run
HOSTILE = "<img src=x onerror=alert(1)>"
LONG = "a_very_long_name_without_any_space_" * 6
WIDTHS = [390, 768, 1280]
SVG = "{http://www.w3.org/2000/svg}"


def start_browser(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    arguments = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
    for argument in (*arguments, "--disable-background-networking", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    try:
        driver = start_browser(tmp_path_factory.mktemp("profile"))
    except WebDriverException:  # its patience with a busy machine ends after a minute: once more
        driver = start_browser(tmp_path_factory.mktemp("profile"))
    driver.set_script_timeout(PATIENCE)
    driver.set_page_load_timeout(PATIENCE)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def model():
    """Four of the ten groups, some rows to train on and some new ones."""
    X, y = make_ten_groups(40, random_state=0)
    kept = y <= 4
    frame, y = pd.DataFrame(X[kept, :14], columns=[f"x{j}" for j in range(14)]), y[kept]
    train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    fitted = quick().fit(frame[train], y[train])
    return fitted, frame[test], y[test]


@pytest.fixture(scope="module")
def pages(model, tmp_path_factory):
    """Addresses of pages: plain names, hostile names, categories and missing values, LSPC."""
    folder = tmp_path_factory.mktemp("pages")
    fitted, X, y = model
    held_out = HeldOut(fitted.classes_, y, fitted.predict_proba(X))
    sizes = estimate_sample_sizes(
        X, y, method="bound", tolerance=0.1, initial_size=6, test_size=4, step=8, random_state=0
    )
    write_report(
        fitted, X, y, folder / "plain.html", held_out=held_out, sample_sizes=sizes, source="groups.csv"
    )
    names = {"x0": HOSTILE, "x1": LONG}
    hostile, labels = X.rename(columns=names), np.array([HOSTILE, LONG, "three", "four"])[y - 1]
    hostile.index = [HOSTILE] * len(hostile)
    hostile_fit = quick().fit(hostile, labels)
    write_report(hostile_fit, hostile, labels, folder / "hostile.html", title=HOSTILE, source=HOSTILE)
    mixed, kinds = table_of_categories()
    with pytest.warns(UserWarning, match="no training row has a value of 'unknown', which is ignored"):
        mixed_fit = quick().fit(mixed, kinds)
    write_report(mixed_fit, mixed, kinds, folder / "mixed.html")
    write_report(LSPClassifier(random_state=0).fit(X, y), X, y, folder / "lspc.html")
    return {path.stem: path.as_uri() for path in folder.glob("*.html")}


def quick():
    return RodeoClassifier(bandwidth="class")


@pytest.fixture(scope="module")
def far(model, tmp_path_factory):
    """The address of a page on which some rows are far from all training rows, and its rows."""
    fitted, X, y = model
    moved = X.copy()
    moved.iloc[::4, 3] += 100.0
    page = tmp_path_factory.mktemp("far") / "far.html"
    return write_report(fitted, moved, y, page).as_uri(), moved


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Reports of three real tables, with what they are made of: classifier, new rows, predictions of them."""
    folder, reports = tmp_path_factory.mktemp("real"), {}
    digits = load_digits(as_frame=True)
    birds, species = load_penguins(return_X_y=True)
    tables = {
        "penguins": (birds, species),
        "cancer": load_breast_cancer(return_X_y=True, as_frame=True),
        "digits": (digits.data[:300], digits.target[:300]),
    }
    for name, (X, y) in tables.items():
        labels, train = np.asarray(y).astype(str), np.arange(len(y)) % 2 == 0
        fitted = quick().fit(X[train], labels[train])
        held_out = HeldOut(fitted.classes_, labels[~train], fitted.predict_proba(X[~train]))
        page = folder / f"{name}.html"
        write_report(fitted, X[~train], labels[~train], page, held_out=held_out, source=name, max_samples=100)
        reports[name] = page.as_uri(), fitted, X[~train], held_out
    return reports


def table_of_categories():
    """Categories with long and hostile names, more than are drawn, and missing values."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    X = pd.DataFrame(
        {
            "low": np.where(rng.uniform(size=90) < 0.8, np.where(y == "a", "high", "low"), HOSTILE),
            "size": rng.normal(np.repeat([0.0, 3.0, 6.0], 30)),
            "town": [f"{LONG[:40]}{i}" for i in rng.integers(0, 20, 90)],
            "unknown": np.nan,
        }
    )
    X.loc[(y == "b") & (rng.uniform(size=90) < 0.7), "size"] = np.nan
    return X, y


@pytest.fixture
def plain(browser, pages):
    return opened(browser, pages["plain"])


def opened(browser, address, width=1280, media="screen", scheme="light"):
    """The browser with a page just loaded, at the top, nothing picked."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # of earlier pages
    return drawn(browser, address)


def drawn(browser, address):
    """The browser with a page whose script has run to its end."""
    browser.get(address)
    until(browser, lambda: one(browser, "[data-drawn]"))
    return browser


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def every(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def texts(browser, selector):
    return [node.text for node in every(browser, selector)]


def contents(browser, selector):
    """The same also of what is out of sight."""
    script = "return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)"
    return browser.execute_script(script, selector)


def cells(browser, selector):
    """What stands in the lines of a table that are in sight."""
    script = """
        const lines = [...document.querySelectorAll(arguments[0] + " tbody tr")];
        return lines.filter((line) => line.checkVisibility()).map(
            (line) => [...line.cells].map((cell) => cell.textContent));
    """
    return browser.execute_script(script, selector)


def click(browser, selector):
    """As a person does: what is out of sight is scrolled to, what is covered cannot be hit."""
    node = one(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
    ActionChains(browser, duration=0).move_to_element(node).click().perform()


def until(browser, condition):
    """Wait for what the page does after the browser has answered: it follows an address in its own time."""
    wait = WebDriverWait(browser, PATIENCE, 0.02, [StaleElementReferenceException, NoSuchElementException])
    return wait.until(lambda _: condition())


def unfold(browser, selector):
    """Ask for the table behind a chart, which is made after that."""
    click(browser, f"{selector} summary")
    until(browser, lambda: cells(browser, f"{selector} .behind"))


def until_focus_is_on(browser, text):
    until(browser, lambda: browser.switch_to.active_element.text == text)


def listed(browser):
    """The rows to choose from."""
    return contents(browser, "#list option")


def named(option):
    """Which row it is that is listed like that."""
    return option.split(":")[0].lstrip("✗ ")


def pick(browser, name):
    """By a click on the row of that name."""
    names = [named(option) for option in listed(browser)]
    one(browser, f"#list option:nth-child({names.index(str(name)) + 1})").click()


def misreading(truth, label, probability):
    advice = "; check the record or the measurements" if probability >= 0.9 else ""
    return f"recorded {truth}, predicted {label}{advice}."


def row_table(browser, caption):
    """Visible lines of one of the tables of the row that is picked."""
    script = """
        const tables = [...document.querySelectorAll("#row table")];
        const table = tables.find((each) => each.caption.textContent.startsWith(arguments[0]));
        return [...table.tBodies[0].rows].map((line) => [...line.cells].map((cell) => cell.textContent));
    """
    return browser.execute_script(script, caption)


# It asks nobody


@pytest.mark.parametrize("name", ["plain", "hostile", "mixed", "lspc"])
def test_opens_from_a_file_without_network_or_complaint(browser, pages, name):
    opened(browser, pages[name])
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requested = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert requested == [pages[name]]
    assert browser.get_log("browser") == []
    assert listed(browser)  # the script ran to its end


def test_hostile_names_are_text(browser, pages):
    opened(browser, pages["hostile"] + "#class-0-variable-0")
    assert browser.title == HOSTILE
    assert one(browser, "h1").text == HOSTILE
    assert every(browser, "img, iframe, object, body script ~ script ~ script") == []
    for section in ("#relevance", ".class-page:not([hidden]) .curves"):
        unfold(browser, section)
    one(browser, "#list option:nth-child(3)").click()
    assert every(browser, "img, [onerror]") == []
    assert HOSTILE in one(browser, "#class-links").text
    assert HOSTILE in one(browser, "#row h3").text
    assert any(HOSTILE in line[0] for line in row_table(browser, "Evidence"))
    assert browser.get_log("browser") == []


# It says what the library says


def signed(number):
    """Two digits, and a sign unless they are zeros."""
    return f"{number:+.2f}" if abs(round(number, 2)) > 0.0 else "0.00"


def test_rows_equal_explain(plain, model):
    fitted, X, y = model
    explanation, proba = fitted.explain(X), fitted.predict_proba(X)
    typicality = fitted.typicality(X)
    resting = next(i for i in range(len(X)) if explanation.caution(i))
    for i in (0, 17, 41, 79, resting):
        pick(plain, X.index[i])
        assert one(plain, "#row h3").text == f"Row {X.index[i]}, labeled {explanation.label[i]}"
        verdict = explanation.sentences(i, f"Row {X.index[i]}")["label"]
        right = explanation.label[i] == y[i]
        judgement = "Right." if right else f"Wrong: {misreading(y[i], explanation.label[i], proba[i].max())}"
        assert one(plain, ".verdict").text == f"{verdict} {judgement}"
        shown = {line[0]: line[1:3] for line in row_table(plain, "Probabilities")}
        pairs = zip(fitted.classes_, proba[i], typicality[i], strict=True)
        assert shown == {str(label): [f"{p:.3f}", f"{share:.3f}"] for label, p, share in pairs}
        shown = {line[0]: line[1:3] for line in row_table(plain, "Evidence")}
        assert shown == {
            name: [f"{explanation.values[i, j]:.4g}", signed(explanation.evidence[i, j])]
            for j, name in enumerate(explanation.feature_names)
        }
        text = one(plain, "#row").text
        sentence = explanation.sentences(i, f"Row {X.index[i]}", fitted.describe())
        assert all(sentence in text for key, sentence in sentence.items() if key != "nearest")
        assert ("Caution: " in text) == bool(sentence["caution"])
        support = row_table(plain, "Nearest training rows")[1:]
        assert [line[:2] for line in support] == [
            [f"training row {label}", f"{share:.3f}"]
            for label, share in zip(explanation.row_names[i], explanation.shares[i], strict=True)
        ]


def test_the_waterfall_adds_up_to_the_odds_of_explain(plain, model):
    fitted, X, _ = model
    explanation = fitted.explain(X)
    for i in (0, 17, 41):
        pick(plain, X.index[i])
        evidence = explanation.evidence[i]
        strongest = np.argsort(-np.abs(evidence.round(2)), kind="stable")[:12]
        rest = np.delete(evidence, strongest).sum()
        expected = [
            ["without any variable", signed(explanation.base[i])],
            *([f"x{j} = {explanation.values[i, j]:.4g}", signed(evidence[j])] for j in strongest),
            ["2 other variables", signed(rest)],
            ["log odds", signed(explanation.log_odds[i])],
        ]
        assert lines_of_waterfall(plain) == expected
        bars = bars_of_waterfall(plain)
        ends = np.cumsum([float(number) for _, number in expected[:-1]])
        longest = int(np.abs(np.diff(ends)).argmax()) + 1
        scale = (bars[longest][2] - bars[longest][1]) / abs(ends[longest] - ends[longest - 1])
        zero = bars[0][1]
        for k, (kind, left, right) in enumerate(bars[1:-1], start=1):
            assert kind == ("for" if ends[k] >= ends[k - 1] else "against")
            drawn = sorted((zero + scale * ends[k - 1], zero + scale * ends[k]))
            assert [left, right] == pytest.approx(drawn, abs=1.1)
        assert ends[-1] == pytest.approx(explanation.log_odds[i], abs=0.075)  # each is rounded


def lines_of_waterfall(browser):
    """Names and numbers, line by line."""
    texts = browser.execute_script("""
        const name = (node) => node.querySelector("title")?.textContent ?? node.textContent;
        const at = (node) => ["x", "y"].map((name) => Number(node.getAttribute(name)));
        const texts = [...document.querySelectorAll("#row .waterfall svg text")];
        return texts.map((node) => [...at(node), name(node)]);
    """)
    lines = {}
    for x, y, text in sorted(texts):
        lines.setdefault(y, []).append((x, text))
    named = [[text for _, text in lines[y]] for y in sorted(lines) if len(lines[y]) == 2]
    return [line for line in named if re.fullmatch(r"[+-]?\d+\.\d\d", line[1])]


def bars_of_waterfall(browser):
    """Kind, left and right end of each bar, from the top."""
    return browser.execute_script("""
        return [...document.querySelectorAll("#row .waterfall rect")].map((node) => {
            const [x, width] = ["x", "width"].map((name) => Number(node.getAttribute(name)));
            return [node.getAttribute("class"), x, x + width];
        });
    """)


FILLED = {"high": "●", "low": "●", "narrow": "▬", "wide": "▬"}


HOLLOW = {"●": "○", "▬": "▭", "◆": "◇"}


def symbol(description, a, j):
    filled = FILLED.get(description.direction[a, j], "◆")
    return (
        ""
        if not description.markers[a, j]
        else filled
        if j in description.leading_markers(a)
        else HOLLOW[filled]
    )


def test_map_equals_describe(plain, model):
    fitted, _, _ = model
    description = fitted.describe()
    unfold(plain, "#relevance")
    shown = {tuple(line[:2]): line[2:] for line in cells(plain, "#relevance .behind")}
    assert len(shown) == description.effect.size
    for a, j in np.ndindex(description.effect.shape):
        difference, effect, pvalue, describes = shown[str(fitted.classes_[a]), f"x{j}"]
        assert f"x{j} {difference or '(no clear difference)'}" == description.phrase(a, j)
        assert float(effect) == pytest.approx(description.effect[a, j], abs=0.005001)
        assert float(pvalue) == float(f"{description.pvalue[a, j]:.1g}")
        assert describes == (f"{symbol(description, a, j)} yes" if description.markers[a, j] else "no")
    symbols = contents(plain, "#map a")
    assert symbols == [symbol(description, a, j) for a, j in np.ndindex(description.effect.shape)]
    assert len(set(symbols)) > 1


# Red, green and blue of a colour, however it is written.
PEN = """
    const seen = (colour) => {
        const pen = document.createElement("canvas").getContext("2d");
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
"""


def test_each_meaning_has_its_colour_in_the_map_and_below_it(browser, real):
    for name in real:
        address, fitted, _, _ = real[name]
        opened(browser, address)
        direction = fitted.describe().direction.ravel()
        kinds, legend = browser.execute_script("""
            const kind = (node) => node.classList[1].replace(/^s0$/, "");
            return [[...document.querySelectorAll("#map a")].map(kind),
                    [...document.querySelectorAll("#map .legend .swatch")].map(kind)];
        """)
        expected = ["more" if " more often" in each or each == "shape" else each for each in direction]
        expected = ["less" if each.endswith(" less often") else each for each in expected]
        assert kinds == expected
        assert set(kinds) <= set(legend)


def test_red_is_high_and_blue_is_low(browser, real):
    address, fitted, _, _ = real["cancer"]
    description = fitted.describe()
    effects, heights = description.effect.ravel(), np.isin(description.direction.ravel(), ["high", "low"])
    script = "const cells = [...document.querySelectorAll('#map a')];"
    script += "return cells.map((cell) => seen(getComputedStyle(cell).backgroundColor));"
    colours = np.array(opened(browser, address).execute_script(PEN + script))
    warmth = colours[:, 0] - colours[:, 2]
    strong = heights & (np.abs(effects) > 0.3)
    assert_array_equal(np.sign(warmth[strong]), np.sign(effects[strong]))
    assert np.abs(warmth[np.abs(effects) < 0.14]).max() < 10
    red = np.flatnonzero(strong & (effects > 0))
    steps = np.diff(colours[red[np.argsort(effects[red])]].sum(axis=1))  # the stronger, the darker
    assert (steps <= 0).all()
    assert (steps < 0).sum() > 2


def test_a_cell_says_its_phrase_effect_and_pvalue(plain, model):
    description = model[0].describe()
    for a, j in ((2, 3), (0, 13)):
        pvalue = float(f"{description.pvalue[a, j]:.1g}")
        sentence = f"{a + 1}: {description.phrase(a, j)}; effect {description.effect[a, j]:+.2f}, "
        sentence += f"p-value {pvalue:g}{'; describes the class' * int(description.markers[a, j])}"
        cell = one(plain, f"a[href='#class-{a}-variable-{j}']")
        assert re.sub(r"e-0*(\d)", r"e-\1", sentence) == cell.get_attribute("aria-label")
        plain.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell)
        ActionChains(plain, duration=0).move_to_element(cell).perform()
        assert one(plain, ".sentence").text == cell.get_attribute("aria-label")
    cell.send_keys(Keys.ARROW_LEFT)
    assert one(plain, ".sentence").text.startswith(f"1: {description.phrase(0, 12)}; effect ")


def test_a_class_shows_its_six_strongest_variables(plain, model):
    description = model[0].describe()
    for a in range(4):
        plain.get(plain.current_url.partition("#")[0] + f"#class-{a}")
        until_focus_is_on(plain, f"Class {a + 1}")
        strongest = description.order[a, :6]
        assert texts(plain, ".class-page:not([hidden]) figcaption") == [
            f"{symbol(description, a, j)} {description.phrase(a, j)}".strip() for j in strongest
        ]
        assert strongest.tolist() != list(range(6)) or a == 0
        listed = [(line[0], line[-1]) for line in cells(plain, ".class-page:not([hidden]) > .table")]
        assert listed == [(f"x{j}", signed(description.evidence[a, j])) for j in description.order[a]]
        assert texts(plain, ".class-page:not([hidden]) > ul li") == description.lines(a)


def test_what_tells_two_classes_apart_best(browser, real):
    opened(browser, real["penguins"][0] + "#class-0")
    page = ".class-page:not([hidden])"
    for rival in ("Chinstrap", "Gentoo"):
        Select(one(browser, f"{page} .control select")).select_by_visible_text(rival)
        sentence = one(browser, f"{page} .curves > p").text
        best = {"Chinstrap": "bill_length_mm", "Gentoo": "flipper_length_mm"}[rival]
        assert sentence.startswith(
            f"Single variables that separate Adelie from {rival} best: {best} (overlap "
        )
        assert 0 < int(re.search(r"overlap (\d+)%", sentence)[1]) < 30
    click(browser, f"{page} .curves > p a")
    until(browser, lambda: one(browser, "figure.large figcaption").text.startswith("● flipper_length_mm low"))


def test_curves_that_are_left_out_are_told_of(browser, model, tmp_path, monkeypatch):
    fitted, X, _ = model
    monkeypatch.setattr("corral.report.contents._MOST_CURVE_POINTS", 0)  # so there are the fewest, six
    opened(browser, write_report(fitted, X, path=tmp_path / "r.html").as_uri())
    description, figures = fitted.describe(), ".class-page:not([hidden]) figcaption"
    drawn = len(every(browser, figures))
    note = one(browser, ".class-page:not([hidden]) .note").text
    assert drawn + note.count("; others") == 6
    assert description.phrase(0, description.order[0, 5]) in note


# It answers to mouse and keys


def test_a_cell_of_the_map_leads_to_the_class_and_the_variable_by_mouse_and_keys(plain):
    click(plain, "a[href='#class-2-variable-13']")
    until_focus_is_on(plain, "Class 3")
    assert "x13" in one(plain, "figure.large figcaption").text
    assert one(plain, "#class-links [aria-current]").text == "3"
    plain.back()
    until(plain, lambda: "#" not in plain.current_url)
    one(plain, "#map a[tabindex='0']").send_keys(Keys.ARROW_RIGHT)
    plain.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert "2: x1 " in plain.switch_to.active_element.get_attribute("aria-label")
    assert len(every(plain, "#map a[tabindex='0']")) == 1
    plain.switch_to.active_element.send_keys(Keys.ENTER)
    until_focus_is_on(plain, "Class 2")
    assert "x1 " in one(plain, "figure.large figcaption").text


def test_class_pages_and_what_they_compare(plain):
    click(plain, "#class-links a:nth-child(4)")
    until_focus_is_on(plain, "Class 4")
    assert [text for text in texts(plain, ".class-page h3") if text] == ["Class 4"]
    page = ".class-page:not([hidden])"
    before = one(plain, f"{page} path.rival[d]:not(.key path)").get_attribute("d")
    legend = one(plain, f"{page} .curves .legend")
    other = "1" if "1" not in legend.text.split() else "2"
    Select(one(plain, f"{page} .control select")).select_by_visible_text(other)
    assert one(plain, f"{page} .curves .legend").text.split()[:2] == ["4", other]
    assert one(plain, f"{page} path.rival[d]:not(.key path)").get_attribute("d") != before
    unfold(plain, f"{page} .curves")
    assert len(cells(plain, f"{page} .curves .behind")) == 6 * 49


def test_categories_are_bars_and_missing_values_are_shown(browser, pages):
    X, y = table_of_categories()
    page = opened(browser, pages["mixed"] + "#class-0-variable-0")
    drawn = one(page, ".class-page:not([hidden]) figure.large")
    assert one(drawn, "figcaption").text.startswith('◆ low = "high" more often')
    names = texts(drawn, "svg > text")
    assert names[1:] == ["high", "low"]
    assert names[0].startswith("<img src=x")
    widths = [float(node.get_attribute("width")) for node in every(drawn, "rect.for")]
    shares = [np.mean(X["low"][y == "a"] == category) for category in (HOSTILE, "high", "low")]
    np.testing.assert_allclose(np.array(widths) / max(widths), np.array(shares) / max(shares), atol=0.01)
    page.get(pages["mixed"] + "#class-1")
    words = one(page, ".class-page:not([hidden])").text
    assert "size missing more often" in words
    assert "and 8 rarer categories" in words
    assert "NaN" not in one(page, "body").text
    missing = int(np.flatnonzero(X["size"].isna())[0])
    Select(one(page, "#list")).select_by_value(str(missing))
    assert ["size", "missing", "0.00", ""] in [
        line[:4] for line in cells(page, "#row .sides > :nth-child(2)")
    ]
    assert ["size = missing", "0.00"] in lines_of_waterfall(page)
    assert any(re.fullmatch(r'low = ".*"', name) for name, _ in lines_of_waterfall(page))
    assert not [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"]


def test_what_is_missing_sorts_after_numbers(browser, pages):
    page = opened(browser, pages["mixed"])
    X, _ = table_of_categories()
    missing = int(np.flatnonzero(X["size"].isna())[0])
    Select(one(page, "#list")).select_by_value(str(missing))
    column = texts(page, "#row .values thead th").index("size")
    one(page, f"#row .values thead th:nth-child({column + 1}) button").click()
    shown = [line[column] for line in cells(page, "#row .values")]
    numbers = [float(value) for value in shown if value != "missing"]
    assert numbers == sorted(numbers)
    assert shown[: len(numbers)] == [value for value in shown if value != "missing"]


def test_tables_sort(plain):
    table = ".class-page:not([hidden]) > .table"
    head = f"{table} th:nth-child(3) button"
    for order, sign in (("ascending", 1), ("descending", -1)):
        click(plain, head)
        assert one(plain, f"{table} th:nth-child(3)").get_attribute("aria-sort") == order
        effects = [sign * float(line[2]) for line in cells(plain, table)]
        assert effects == sorted(effects)
        assert len(set(effects)) > 5
    one(plain, f"{table} th:nth-child(1) button").send_keys(Keys.ENTER)
    assert [line[0] for line in cells(plain, table)] == [f"x{j}" for j in range(14)]  # not x1, x10, x11


def test_tables_filter_and_show_all(plain, model):
    table = ".class-page:not([hidden]) > .table"
    one(plain, f"{table} input").send_keys("X13")
    assert [line[0] for line in cells(plain, table)] == ["x13"]
    evidence = "#row .table:has(button:not(.sort))"
    assert len(cells(plain, evidence)) == 12
    click(plain, f"{evidence} > button")
    assert len(cells(plain, "#row .sides .table:nth-child(2)")) == model[0].n_features_in_


def test_a_row_is_picked_by_mouse_and_by_keys(plain):
    click(plain, "#list option:nth-child(3)")
    third, fourth = (named(option) for option in listed(plain)[2:4])
    assert one(plain, "#row h3").text.startswith(f"Row {third},")
    one(plain, "#list").send_keys(Keys.ARROW_DOWN)
    assert one(plain, "#row h3").text.startswith(f"Row {fourth},")


def test_rows_are_filtered_by_class_error_and_text(plain, model):
    fitted, X, y = model
    labels = fitted.predict(X)
    click(plain, "#filter-wrong")
    assert len(listed(plain)) == (labels != y).sum() > 0
    assert all(row.startswith("✗") for row in listed(plain))
    Select(one(plain, "#filter-truth")).select_by_visible_text("2")
    assert len(listed(plain)) == ((labels != y) & (y == 2)).sum()
    click(plain, "#filter-wrong")
    assert len(listed(plain)) == (y == 2).sum()
    Select(one(plain, "#filter-truth")).select_by_visible_text("all")
    Select(one(plain, "#filter-label")).select_by_visible_text("3")
    assert len(listed(plain)) == (labels == 3).sum()
    Select(one(plain, "#order")).select_by_visible_text("least certain first")
    top = np.sort(fitted.predict_proba(X).max(axis=1)[labels == 3])
    assert [row.split("(")[1][:5] for row in listed(plain)] == [f"{p:.3f}" for p in top]
    one(plain, "#filter-text").send_keys("no such row")
    assert listed(plain) == []
    assert one(plain, "#row").text == "No row on this page matches."


def test_a_cell_of_the_confusion_matrix_shows_its_rows(plain, model):
    fitted, X, y = model
    labels = fitted.predict(X)
    a, b = next((a, b) for a, b in zip(y, labels, strict=True) if a != b)
    click(plain, f"#confusion tbody tr:nth-child({a}) td:nth-child({b + 1}) button")
    assert len(listed(plain)) == ((y == a) & (labels == b)).sum()
    assert plain.switch_to.active_element.get_attribute("id") == "list"


def test_errors_that_are_counted_come_first(browser, model, tmp_path):
    fitted, X, y = model
    held_out = HeldOut.of_folds(quick(), X, y, cv=2)
    page = write_report(fitted, X, y, tmp_path / "r.html", held_out=held_out, max_samples=60)
    drawn(browser, page.as_uri())
    wrong = held_out.labels != held_out.truth
    first = [True] * wrong.sum() + [False] * (60 - wrong.sum())
    assert [row.startswith("✗") for row in listed(browser)] == first
    confidence = [f"{p:.3f}" for p in np.sort(held_out.proba[wrong].max(axis=1))[::-1]]
    shown = [row.partition("(")[2][:5] for row in listed(browser)[: wrong.sum()]]  # not of novel rows
    assert all(p in ("", expected) for p, expected in zip(shown, confidence, strict=True))
    assert any(shown)
    assert "Wrong: recorded" in one(browser, "#row").text


def test_rows_that_deserve_a_look_are_linked(browser, model, far):
    (fitted, X, y), (address, far) = model, far
    opened(browser, address)
    wrong, novel = fitted.predict(far) != y, fitted.is_novel(far)
    explanation = fitted.explain(far)
    resting = np.array([bool(explanation.caution(i)) for i in range(len(y))])
    proba = np.sort(fitted.predict_proba(far), axis=1)
    ambiguous = proba[:, -2] >= proba[:, -1] / 2
    assert wrong.any()
    assert novel.any()
    counts = {"wrong": wrong, "novel": novel, "resting on one row or group": resting, "ambiguous": ambiguous}
    texts = [
        REASONS_TO_LOOK[name][int(is_so.sum() != 1)].format(n=is_so.sum()) for name, is_so in counts.items()
    ]
    assert f"{', '.join(texts[:3])}, and {texts[3]}." in one(browser, "#look").text
    assert "The 8 rows on this page whose recorded class has the lowest prob" in one(browser, "#look").text
    lines = cells(browser, "#look")
    recorded = fitted.predict_proba(far)[np.arange(len(y)), np.searchsorted(fitted.classes_, y)]
    least = np.argsort(recorded, kind="stable")[:8]
    assert [line[0] for line in lines] == [str(name) for name in X.index[least]]
    assert [line[3:5] for line in lines] == [[str(y[i]), f"{recorded[i]:.3f}"] for i in least]
    assert [line[5].startswith("recorded ") for line in lines] == wrong[least].tolist()
    click(browser, "#filter-novel")
    for _ in range(2):  # by its address, and again though that stays the same
        click(browser, "#look tbody tr:nth-child(2) a")
        until(browser, lambda: one(browser, "#row h3").text.startswith(f"Row {lines[1][0]},"))
        assert browser.switch_to.active_element.get_attribute("id") == "list"
        Select(one(browser, "#list")).select_by_index(5)


def test_a_matrix_of_26_classes_fits(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([chr(65 + i) for i in range(26)], 6)
    X = np.repeat(rng.normal(size=(26, 3)), 6, axis=0) + 0.5 * rng.normal(size=(156, 3))
    fitted = quick().fit(X, y)
    page = write_report(fitted, X, y, tmp_path / "r.html", max_samples=5)
    for width in WIDTHS:
        opened(browser, page.as_uri(), width=width)
        inner, outer = browser.execute_script(
            "const box = document.querySelector('#confusion .scroll');"
            "return [box.scrollWidth, box.clientWidth];"
        )
        assert inner <= outer <= width
        assert len(cells(browser, "#confusion")) == 26


def test_a_notebook_shows_the_page_in_a_frame(browser, model, tmp_path):
    fitted, X, y = model
    shown = write_report(fitted, X, y, max_samples=9)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!DOCTYPE html><meta charset=utf-8>{shown._repr_html_()}", encoding="utf-8")
    browser.get(notebook.as_uri())
    browser.switch_to.frame(one(browser, "iframe"))
    until(browser, lambda: one(browser, "[data-drawn]"))
    assert len(listed(browser)) == 9
    click(browser, "#look a")
    until(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "list")
    click(browser, "#class-links a:nth-child(2)")
    until_focus_is_on(browser, "Class 2")
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


def test_rows_with_names_are_called_by_them(browser, model, tmp_path):
    _, X, y = model
    named = X.set_index(pd.Index([f"P{i:03d}" for i in range(len(y))], name="patient"))
    fitted = quick().fit(named, y)
    drawn(browser, write_report(fitted, named, y, tmp_path / "r.html").as_uri())
    pick(browser, "P003")
    assert one(browser, "#row h3").text == f"patient P003, labeled {fitted.predict(named)[3]}"
    support = [line[0] for line in row_table(browser, "Nearest training rows")]
    assert support == ["this row", *fitted.explain(named.iloc[[3]]).row_names[0]]
    typical = cells(browser, ".class-page:not([hidden]) .values")
    assert all(re.fullmatch(r"P\d{3}", line[0]) for line in typical)


def test_errors_on_other_rows_lead_nowhere(browser, model, tmp_path):
    fitted, X, y = model
    held_out = HeldOut(fitted.classes_, y[:-1], fitted.predict_proba(X)[:-1])
    drawn(browser, write_report(fitted, X, y, tmp_path / "r.html", held_out=held_out).as_uri())
    counts = [cell for line in cells(browser, "#confusion") for cell in line[1:]]
    assert sum(int(count) for count in counts) == len(y) - 1
    assert not every(browser, "#confusion table button")


def test_keys_reach_everything_and_show_where_they_are(plain):
    keys = ActionChains(plain)
    keys.send_keys(Keys.TAB).perform()
    skip = plain.switch_to.active_element
    assert skip.text == "Skip to the contents"
    assert skip.rect["x"] >= 0
    assert skip.value_of_css_property("outline-style") == "solid"
    skip.send_keys(Keys.ENTER)
    assert plain.switch_to.active_element.get_attribute("id") == "main"
    n_controls = plain.execute_script("""
        window.outlines = new Set();
        const controls = [...document.querySelectorAll("main :is(a, button, input, select, summary)")];
        window.missed = new Set(controls.filter((node) => node.tabIndex >= 0 && node.checkVisibility()));
        addEventListener("focusin", ({ target }) => {
            // A busy browser may give the focus once more to where the link has led, which shows none.
            if (!target.matches("main, h3")) window.outlines.add(getComputedStyle(target).outlineStyle);
            window.missed.delete(target);
        });
        return missed.size;
    """)
    assert n_controls > 60
    ActionChains(plain).send_keys(Keys.TAB * (n_controls + 40)).perform()  # boxes that scroll are stops, too
    assert plain.execute_script("return [...missed].map((node) => node.outerHTML)") == []
    assert plain.execute_script("return [...outlines]") == ["solid"]


# Pictures to save


@pytest.fixture
def downloads(browser, tmp_path):
    """The folder into which the browser saves files."""
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    return tmp_path


def saved(browser, downloads, selector):
    """The picture that a button saves, parsed; a part of a file has another name."""
    before = set(downloads.iterdir())
    click(browser, selector)
    until(browser, lambda: set(downloads.glob("*.svg")) - before)
    (file,) = set(downloads.glob("*.svg")) - before
    picture = ElementTree.parse(file).getroot()
    assert picture.tag == f"{SVG}svg"
    assert len(picture.find(f"{SVG}title").text) > 5
    assert len(picture.find(f"{SVG}desc").text) > 20
    width = float(picture.get("width"))
    for node in picture.iter():
        assert not {"class", "style", "href", "src"} & set(node.attrib)
        if node.tag == f"{SVG}rect":
            x = float(node.get("x", 0.0))
            assert 0.0 <= x < x + float(node.get("width")) <= width
        if node.tag in (f"{SVG}rect", f"{SVG}text"):
            assert re.fullmatch(r"#[0-9a-f]{6}", node.get("fill"))
    assert "var(" not in file.read_text(encoding="utf-8")
    return picture


def cells_of(picture):
    """What is said of each cell, its text and its colour."""
    saved_cells = []
    for group in picture.iter(f"{SVG}g"):
        title, ground, text = group
        if title.text:
            saved_cells.append((title.text, text.text or "", ground.get("fill")))
    return saved_cells


def seen_cells(browser, selector):
    """The same of a table on the page."""
    return browser.execute_script(
        PEN
        + """
        const digits = (part) => part.toString(16).padStart(2, "0");
        const colour = (node) => "#" + seen(getComputedStyle(node).backgroundColor).map(digits).join("");
        return [...document.querySelectorAll(arguments[0])].map(
            (node) => [node.title, node.textContent, colour(node)]);
        """,
        selector,
    )


@pytest.mark.parametrize("name", ["penguins", "digits"])
def test_the_map_and_the_matrix_are_saved_as_they_are_seen(browser, real, downloads, name):
    address, fitted, _, held_out = real[name]
    opened(browser, address)
    map_cells = cells_of(saved(browser, downloads, "#map .save"))
    assert [list(cell) for cell in map_cells] == seen_cells(browser, "#map a.cell")
    assert len(map_cells) == fitted.describe().effect.size
    matrix_cells = cells_of(saved(browser, downloads, "#confusion .save"))
    counts = confusion_matrix(held_out.truth, held_out.labels)
    assert [int(text) for _, text, _ in matrix_cells] == counts.ravel().tolist()
    on_page = seen_cells(browser, "#confusion .cell")
    assert [list(cell) for cell in matrix_cells if cell[1] != "0"] == on_page


def test_the_waterfall_is_saved_as_it_is_seen(browser, real, downloads):
    opened(browser, real["penguins"][0], scheme="dark")
    picture = saved(browser, downloads, "#row .save")
    drawn = {node.findtext(f"{SVG}title") or node.text for node in picture.iter(f"{SVG}text")}
    for name, number in lines_of_waterfall(browser):
        assert {name, number} <= drawn
    assert picture.findtext(f"{SVG}title").startswith("Why row ")
    fills = {node.get("fill") for node in picture.iter(f"{SVG}rect")}
    assert {"#ffffff", "#0072b2", "#b84d00"} <= fills  # as on paper, though the page is dark


# The checker of accessibility


@pytest.mark.skipif(not AXE.exists(), reason="there is no axe-core in build/axe (make axe fetches it by npm)")
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("penguins", 390, "light"),
        ("penguins", 1280, "dark"),
        ("cancer", 768, "light"),
        ("digits", 1280, "light"),
        ("mixed", 1280, "light"),
        ("lspc", 390, "dark"),
    ],
)
def test_the_checker_finds_nothing(browser, pages, real, name, width, scheme):
    opened(browser, pages[name] if name in pages else real[name][0], width=width, scheme=scheme)
    for summary in every(browser, "summary") if name == "mixed" else ():
        browser.execute_script("arguments[0].click()", summary)
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    violations = browser.execute_async_script("""
        const done = arguments[0];
        axe.run(document, { resultTypes: ["violations"] }).then(
            ({ violations }) => done(violations.map(({ id, nodes }) =>
                [id, nodes.length, nodes[0].html.slice(0, 200), nodes[0].failureSummary])),
            (error) => done(String(error)));
    """)
    assert violations == []


def test_everything_has_a_name(plain):
    assert plain.execute_script("""
        const label = (node) => node.getAttribute("aria-label") || node.textContent.trim();
        const named = (node) => node.labels?.length || label(node);
        const nodes = [...document.querySelectorAll("a, button, input, select, svg[role], article")];
        const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
        return [nodes.filter((node) => !named(node)).map((node) => node.outerHTML.slice(0, 200)),
                ids.length - new Set(ids).size];
    """) == [[], 0]


# It looks well everywhere


STICKING_OUT = """
    const inside = (node) => {
        for (let box = node.parentElement; box; box = box.parentElement) {
            if (getComputedStyle(box).overflowX !== "visible" && box !== document.body) return true;
        }
        return false;
    };
    return [...document.body.querySelectorAll("*")].filter((node) => {
        const { left, right, width } = node.getBoundingClientRect();
        const sticks = right > innerWidth + 0.5 || left < -0.5;
        return width && sticks && !node.matches(".skip") && node.checkVisibility() && !inside(node);
    }).map((node) => node.outerHTML.slice(0, 100));
"""


@pytest.mark.parametrize("name", ["plain", "hostile", "mixed", "lspc", "penguins", "cancer", "digits"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(browser, pages, real, name, width):
    opened(browser, pages[name] if name in pages else real[name][0], width=width)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.execute_script(STICKING_OUT) == []


def test_charts_have_tables(plain, model):
    n_rows = len(model[1])
    unfold(plain, "#reliability")
    assert sum(int(line[-1]) for line in cells(plain, "#reliability")) == n_rows
    unfold(plain, "#steps")
    steps = cells(plain, "#steps")
    assert len(every(plain, "#steps circle")) == 2 * len(steps) > 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, pages, scheme):
    """By the ratio of WCAG 2, which must be 4.5 for text."""
    opened(browser, pages["plain"], scheme=scheme)
    meanings = ("high", "low", "wide", "narrow", "more", "less", "hit", "miss")
    kinds = [*(f"cell {meaning} s{i}" for meaning in meanings for i in range(7)), "small", "wrong"]
    colours = browser.execute_script(
        PEN
        + """
        const ground = getComputedStyle(document.body).backgroundColor;
        return arguments[0].map((kind) => {
            const node = document.createElement("p");
            node.className = kind;
            document.body.append(node);
            const { color, backgroundColor } = getComputedStyle(node);
            return [color, kind.startsWith("cell") ? backgroundColor : ground].map(seen);
        });
        """,
        kinds,
    )
    assert (luminance(colours[-1][1]) < 0.1) == (scheme == "dark")  # the ground of the page
    for kind, pair in zip(kinds, colours, strict=True):
        light, dark = sorted((luminance(colour) for colour in pair), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (kind, pair)


def luminance(colour):
    shares = np.array(colour) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_print_shows_all_classes_and_no_controls(browser, pages):
    opened(browser, pages["plain"], width=720, media="print", scheme="dark")  # about the width of A4
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 720
    assert one(browser, "body").value_of_css_property("background-color") == "rgba(255, 255, 255, 1)"
    assert all(page.is_displayed() for page in every(browser, ".class-page"))
    for selector in ("nav.top", ".picker", ".table > input", ".behind"):
        assert not one(browser, selector).is_displayed()
    assert texts(browser, ".class-page h3") == [f"Class {a}" for a in range(1, 5)]


def test_what_is_seen_on_screen_can_be_printed(plain):
    pdf = base64.b64decode(plain.print_page())
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") >= 6  # one at least for each class, though only one is on the screen
    assert len(every(plain, ".class-page h3")) == 4


def test_novel_rows_are_marked_filtered_placed_and_counted(browser, model, far):
    (fitted, X, _), (address, far) = model, far
    opened(browser, address)
    novel = fitted.is_novel(far)
    assert novel[::4].all()
    assert not novel.all()
    assert f"{novel.sum()} of {len(far)} rows on this page are novel" in one(browser, "#summary").text
    assert sum("⚠ novel" in row for row in listed(browser)) == novel.sum()
    click(browser, "#filter-novel")
    assert len(listed(browser)) == novel.sum()
    text = one(browser, "#row").text
    assert "⚠ This row is novel: less typical than 99 in 100 training rows; the row differs from " in text
    value = rf"{X.columns[3]} = 10\d\.\d \((\d) typically (0\.\d+); from -?[\d.]+ to [\d.]+\)"
    sentence = f"the nearest class, most in {value}"
    label, typical = re.search(sentence, text).groups()
    assert float(typical) == pytest.approx(fitted.describe().typical[int(label) - 1, 3], abs=1e-4)
    assert row_table(browser, "Probabilities")[0][1] in one(browser, "#row .verdict").text
    bars = every(browser, "#row .place rect")
    line = one(browser, "#row .place path.rival")
    assert line.rect["x"] < min(bar.rect["x"] for bar in bars)
    click(browser, "#filter-novel")
    Select(one(browser, "#order")).select_by_visible_text("least typical first")
    assert all("⚠ novel" in row for row in listed(browser)[: novel.sum()])
    unfold(browser, "#row .place")
    scores = [shares.values for shares in fitted.model_.trust.reference(Computation()).typical]
    best = int(fitted.assess(far).scores[novel].max(axis=1).argmin())
    a = int(fitted.assess(far[novel].iloc[[best]]).scores.argmax())
    assert sum(int(line[-1]) for line in cells(browser, "#row .place")) == scores[a].size


# How well rows are ranked


@pytest.fixture(scope="module")
def two_classes(tmp_path_factory):
    """The address of a page on two classes, and its held-out predictions."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200, :5], np.where(y[:200] == 1, "benign", "malignant")
    held_out = HeldOut.of_folds(quick(), X, y, cv=3)
    path = tmp_path_factory.mktemp("two") / "two.html"
    return write_report(quick().fit(X, y), X, y, path, held_out=held_out).as_uri(), held_out


def test_the_slider_shows_the_consequences_of_a_threshold(browser, two_classes):
    address, held_out = two_classes
    opened(browser, address)
    slider = one(browser, "#threshold input[type=range]")
    assert slider.get_attribute("aria-valuetext") == "0.5"
    label = held_out.rarer_class
    dots = [dot.get_attribute("cx") for dot in every(browser, "#ranking circle.dot")]
    slider.send_keys(Keys.HOME)
    first = held_out.thresholds(label)[0]
    words = one(browser, "#threshold output").text
    assert words.startswith(f"With the threshold 0.01, {first.n_called} of 200 rows are called {label}")
    n_rows = (held_out.truth == label).sum()
    assert f"{first.n_right} of the {n_rows} rows of {label} are found" in words
    moved = [dot.get_attribute("cx") for dot in every(browser, "#ranking circle.dot")]
    assert len(dots) == len(moved) == 2
    assert dots[0] != moved[0]
    unfold(browser, "#threshold")
    expected = [(point.n_called, point.n_right, point.n_false) for point in held_out.thresholds(label)]
    assert [tuple(map(int, line[1:4])) for line in cells(browser, "#threshold")] == expected


def test_curves_follow_the_chosen_class(plain, model):
    fitted, X, y = model
    held_out = HeldOut(fitted.classes_, y, fitted.predict_proba(X))
    select = Select(one(plain, "#ranking select"))
    assert [option.text for option in select.options] == [str(label) for label in fitted.classes_]
    for label in fitted.classes_.tolist()[:2]:
        select.select_by_visible_text(str(label))
        scores = held_out.scores().by_class[str(label)]
        roc, precision = texts(plain, "#ranking figcaption")
        assert roc.startswith(f"AUC of {label}: {scores.auc:.3f}")
        assert precision.startswith(f"Average precision of {label}: {scores.average_precision:.3f}")
        roc, precision = (node.get_attribute("aria-label") for node in every(plain, "#ranking svg"))
        assert roc.startswith(f"ROC curve of {label}")
        assert precision.startswith(f"Precision-recall curve of {label}")
        assert len(every(plain, "#ranking figure:first-child path.own")) == 1
        assert len(every(plain, "#ranking figure:first-child path.other")) == 3
        unfold(plain, "#ranking")
        assert len(cells(plain, "#ranking")) == len(held_out.ranking_curve(label))
    assert not every(plain, "#threshold input")


@pytest.mark.parametrize("width", WIDTHS)
def test_curves_and_slider_fit(browser, two_classes, width):
    opened(browser, two_classes[0], width=width, scheme="dark")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width

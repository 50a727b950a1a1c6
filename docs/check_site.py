"""Checks a built site: python docs/check_site.py build/site [--browser]

Every link and anchor within the site must lead somewhere, every picture must have an alternative text, and
pages may load nothing from elsewhere. With --browser, Chromium opens every page at the width of a phone and
of a desk: nothing may reach beyond the window, the console must show no error, the search must find the
words that readers look for, and the report on the landing page must react to a click.
"""

import argparse
import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WIDTHS = (390, 1280)
SEARCHED = ("predict_set", "groups", "missing", "novel", "SHAP")
LOADED = {"img": "src", "script": "src", "iframe": "src", "link": "href", "source": "src"}


class Page(HTMLParser):
    """The links, loaded files and anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.silent_pictures: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in {"canonical", "author"}:
            self.loads.append(values[LOADED[tag]])
        if tag == "img" and "alt" not in values:  # an empty one says that the words beside it are enough
            self.silent_pictures.append(values.get("src", "?"))


def find_faults(site: Path) -> list[str]:
    """One sentence per fault of a site."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    faults = [] if pages else [f"{site} has no pages."]
    for path, page in pages.items():
        name = path.relative_to(site)
        faults += [f"{name}: the picture {src} has no alternative text." for src in page.silent_pictures]
        faults += [f"{name} loads {url} from elsewhere." for url in page.loads if is_elsewhere(url)]
        for link in [*page.links, *page.loads]:
            if not is_elsewhere(link) and (fault := why_broken(link, page, pages)):
                faults.append(f"{name}: the link {link!r} {fault}.")
    return faults


def is_elsewhere(url: str) -> bool:
    """Whether an address leaves the site, or holds its own contents."""
    parts = urlsplit(url)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def why_broken(link: str, page: Page, pages: dict[Path, Page]) -> str:
    """Why a link within the site leads nowhere; an empty string if it works."""
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "leads to no file"
    anchor = unquote(parts.fragment)
    drawn_by_script = target.parent.name == "reports"
    if anchor and target in pages and anchor not in pages[target].anchors and not drawn_by_script:
        return "leads to no anchor"
    return ""


# ---------------------------------------------------------------------------------------------- browser


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a site to this machine alone; yield its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/favicon.ico":  # browsers ask for it where a page names no picture
                self.send_response(http.HTTPStatus.NO_CONTENT)
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def chromium() -> Iterator:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options, Service(shutil.which("chromedriver"))) as browser:
        yield browser


def find_faults_in_browser(site: Path) -> list[str]:
    """Open all pages in Chromium; return one sentence per fault."""
    faults = []
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    pages = [page for page in pages if not page.startswith("_")]
    with served(site) as address, chromium() as browser:
        for width in WIDTHS:
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            for page in pages:
                browser.get(address + page)
                faults += [f"{page} at {width}: {fault}" for fault in faults_of_open_page(browser, width)]
        faults += find_silent_report(browser, address) + find_silent_search(browser, address)
    return faults


def faults_of_open_page(browser, width: int) -> Iterator[str]:
    for entry in browser.get_log("browser"):
        if entry["level"] == "SEVERE":
            yield f"the console says {entry['message']}"
    reached = browser.execute_script("return document.documentElement.scrollWidth")
    if reached > width:
        yield f"it reaches to {reached} pixels: {browser.execute_script(WIDEST, width)}"


# The elements that stick out of the window and are not inside a box that scrolls.
WIDEST = """
const scrolls = e => e && (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) ||
                           scrolls(e.parentElement));
return [...document.body.querySelectorAll("*")]
  .filter(e => e.getBoundingClientRect().right > arguments[0] + 1 && !scrolls(e.parentElement))
  .slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(" | ");
"""


def find_silent_report(browser, address: str) -> list[str]:
    """The report on the landing page must show rows and react to a click."""
    from selenium.webdriver.common.by import By

    browser.get(address + "index.html")
    frame = browser.find_element(By.CSS_SELECTOR, "iframe.live-report")
    browser.execute_script("arguments[0].scrollIntoView()", frame)
    browser.switch_to.frame(frame)
    browser.implicitly_wait(30)  # seconds, until the script has drawn what is looked for
    parts = [browser.find_elements(By.ID, part) for part in ("relevance", "rows")]
    wrong_only = browser.find_elements(By.CSS_SELECTOR, "#rows [type=checkbox]")
    if not all(parts) or not wrong_only:
        return ["index.html: the embedded report has no rows to look at."]
    before = browser.find_element(By.ID, "rows").text
    browser.execute_script("arguments[0].click()", wrong_only[0])
    after = browser.find_element(By.ID, "rows").text
    browser.switch_to.default_content()
    return [] if before != after else ["index.html: the embedded report does not answer to a click."]


def find_silent_search(browser, address: str) -> list[str]:
    """The search must find the words that readers look for."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    faults = []
    for word in SEARCHED:
        browser.get(f"{address}search.html?q={word}")
        try:
            WebDriverWait(browser, 20).until(
                lambda browser: browser.find_elements(By.CSS_SELECTOR, "#search-results li a")
            )
        except Exception:
            faults.append(f"The search finds nothing for {word!r}.")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=lambda text: Path(text).resolve())
    parser.add_argument("--browser", action="store_true", help="open all pages in Chromium as well")
    arguments = parser.parse_args()
    faults = find_faults(arguments.site)
    if arguments.browser:
        faults += find_faults_in_browser(arguments.site)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults in {arguments.site}.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""The site as it was built by ``make docs``: looked at in a browser, and from disk."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "out" / "docs"
LOOKED_AT = (
    "index.html",
    "start.html",
    "guide.html",
    "theory.html",
    "benchmarks.html",
    "reference.html",
    "command_line.html",
    "generated/nysboost.Nystroem.html",
    "gallery/index.html",
    "gallery/plot_02_landmarks_move.html",
)

pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="The site is not built: make docs."
)


class Page(HTMLParser):
    """Links, pictures and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.pictures, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script") and given.get("src"):
            self.pictures.append(given["src"])


@pytest.fixture(scope="module")
def pages():
    written = (path for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts)
    return {path.resolve(): Page(path) for path in written}


def test_every_picture_and_script_is_a_file_of_the_site(pages):
    for path, page in pages.items():
        for source in page.pictures:
            parts = urlsplit(source)
            assert not parts.scheme or parts.scheme == "data", (path.name, source)
            assert parts.scheme or (path.parent / unquote(parts.path)).is_file(), (
                path.name,
                source,
            )


def test_every_link_within_the_site_leads_to_a_page_and_a_place_on_it(pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("#"):
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            assert target.exists(), (path.name, link)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, (path.name, link)


def test_fourteen_scripts_or_more_have_a_picture_in_the_gallery(pages):
    with_picture = [
        path
        for path, page in pages.items()
        if path.parent.name == "gallery" and any("sphx_glr_plot" in p for p in page.pictures)
        if path.name.startswith("plot_")
    ]
    assert len(with_picture) >= 14


@pytest.fixture(params=LOOKED_AT)
def opened(request, browser):
    browser.get_log("browser")
    browser.get_log("performance")
    browser.set_window_size(1200, 1000)
    browser.get((SITE / request.param).as_uri())
    return browser


def test_in_a_browser_a_page_has_no_console_error_and_asks_the_network_for_nothing(opened):
    said = opened.get_log("browser")
    assert [message for message in said if message["level"] != "INFO"] == []
    events = [json.loads(e["message"])["message"] for e in opened.get_log("performance")]
    asked = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    mine = [a["request"]["url"] for a in asked if a["documentURL"] == opened.current_url]
    assert opened.current_url in mine
    assert all(url.startswith(("file://", "data:", "blob:")) for url in mine)


def test_in_a_browser_every_picture_is_drawn(opened):
    opened.execute_script("for (const i of document.images) i.loading = 'eager'")
    sizes = opened.execute_script(
        "return Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth)))"
    )
    assert all(size > 0 for size in sizes)


def test_in_a_browser_a_page_is_no_wider_than_a_phone(opened):
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True},
    )
    wide = opened.execute_script("return document.documentElement.scrollWidth")
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 390


def test_in_a_browser_dark_mode_has_light_words_on_a_dark_page(opened):
    opened.execute_script("document.documentElement.dataset.theme = 'dark'")
    colours = opened.execute_script(
        "const s = getComputedStyle(document.body);"
        "return [s.backgroundColor, getComputedStyle(document.querySelector('h1')).color]"
    )
    page, words = (sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in colours)
    assert page < 60
    assert words > 160


def test_in_a_browser_the_search_finds_joint(browser):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get((SITE / "search.html").as_uri() + "?q=joint")
    results = "#search-results li a"  # they come one after the other
    WebDriverWait(browser, 30).until(lambda b: len(b.find_elements("css selector", results)) > 3)


def test_in_a_browser_equations_are_wider_than_high_and_in_the_middle(browser):
    browser.set_window_size(1200, 1000)
    browser.get((SITE / "theory.html").as_uri())
    places = browser.execute_script(
        "return [...document.querySelectorAll('div.math')].map(d => {"
        "const line = d.getBoundingClientRect();"
        "const m = d.querySelector('math').getBoundingClientRect();"
        "return [m.width, m.height, (m.left + m.right - line.left - line.right) / 2]})"
    )
    assert len(places) >= 4
    for width, height, off in places:
        assert width > height
        assert abs(off) < 2

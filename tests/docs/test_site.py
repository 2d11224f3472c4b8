"""The site as it was built by ``make docs``: looked at in a browser, and from disk."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "out" / "docs"
LOOKED_AT = (
    "index", "approximate", "boosting", "tutorial_table", "howto", "missing_values", "install",
    "hyperparameters", "command_line", "theory", "evidence", "accuracy", "benchmarks", "systems",
    "glossary", "reference", "generated/nysboost.Nystroem", "generated/nysboost.NystroemRegressor",
    "gallery/index", "gallery/plot_02_optimised_landmarks",
)  # fmt: skip
SOUGHT = {
    "categorical": "missing_values",
    "missing values": "missing_values",
    "feature importance": "importance",
    "confidence interval": "intervals",
    "GPU": "gpu",
    "out of memory": "memory",
    "save model": "deploy",
    "choose n_components": "landmarks",
    "hyperparameter": "hyperparameters",
    "predict probability": "tutorial_classification",
    "sparse": "sparse",
    "dates": "dates",
    "hour of day": "dates",
    "class imbalance": "imbalance",
    "set_output": "set_output",
    "precomputed": "precomputed",
    "time series": "validation",
    "install": "install",
}
"""What users ask the search, and the page that answers."""

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


def open_page(browser, url):
    """Open a page, and wait for it: the search page before it may still be fetching others."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(url)
    there = "return [location.href, document.readyState]"
    WebDriverWait(browser, 60).until(lambda b: b.execute_script(there) == [url, "complete"])


@pytest.mark.parametrize("page", LOOKED_AT)
def test_in_a_browser_a_page_is_quiet_whole_no_wider_than_the_window_and_dark(browser, page):
    for log in ("browser", "performance"):
        browser.get_log(log)  # what earlier pages said
    browser.set_window_size(1200, 1000)
    open_page(browser, (SITE / f"{page}.html").as_uri())
    assert_no_error_and_no_network(browser)
    assert_every_picture_is_drawn(browser)
    for width in (390, 1400):
        assert_no_wider_than(browser, width)
    assert_dark_mode_has_light_words(browser)


def assert_no_error_and_no_network(opened):
    said = opened.get_log("browser")
    assert [message for message in said if message["level"] != "INFO"] == []
    events = [json.loads(e["message"])["message"] for e in opened.get_log("performance")]
    asked = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    mine = [a["request"]["url"] for a in asked if a["documentURL"] == opened.current_url]
    assert opened.current_url in mine
    assert all(url.startswith(("file://", "data:", "blob:")) for url in mine)


def assert_every_picture_is_drawn(opened):
    opened.execute_script("for (const i of document.images) i.loading = 'eager'")
    sizes = opened.execute_script(
        "return Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth)))"
    )
    assert all(size > 0 for size in sizes)


BROKEN = """
    const broken = [];
    for (const cell of document.querySelectorAll('.bd-article td.number')) {
        const words = document.createRange();
        words.selectNodeContents(cell);
        const lines = [...words.getClientRects()].map(line => line.bottom);
        if (Math.max(...lines) - Math.min(...lines) > 8) broken.push(cell.textContent.trim());
    }
    return broken;
"""
"""Cells with a number whose parts stand on more than one line."""

OUTSIDE = """
    const parts = document.querySelectorAll(
        '.bd-article :is(h1, h2, dt.sig), .bd-toc-item, .bd-links, .pst-scrollable-table-container'
    );
    const outside = [];
    for (const part of parts) {
        const scrolls = getComputedStyle(part).overflowX !== 'visible';
        const wide = scrolls ? part.getBoundingClientRect().right - innerWidth
                             : part.scrollWidth - part.clientWidth;
        if (part.offsetWidth && part.offsetParent && wide > 1) {
            outside.push(part.className || part.textContent);
        }
    }
    return outside;
"""
"""Headings, contents and tables whose letters leave their place."""


TORN = r"""
    const torn = [];
    const parts = document.querySelectorAll('.prev-next-title, .bd-article :is(h1, h2, th)');
    for (const part of parts) {
        const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const found of texts.currentNode.data.matchAll(/[\p{L}\d]+/gu)) {
                const word = document.createRange();
                word.setStart(texts.currentNode, found.index);
                word.setEnd(texts.currentNode, found.index + found[0].length);
                const lines = [...word.getClientRects()].map(line => line.bottom);
                if (Math.max(...lines) - Math.min(...lines) > 8) torn.push(found[0]);
            }
        }
    }
    return torn;
"""
"""Words of titles, of heads of tables and of links to neighbours that stand on two lines."""

LAID_OUT = """
    const done = arguments[arguments.length - 1];
    const drawn = () => new Promise(requestAnimationFrame);
    const settled = () => Promise.allSettled(document.getAnimations().map(each => each.finished));
    drawn().then(drawn).then(settled).then(() => done());
"""
"""Wait until the transitions of the margins to another width have ended."""

SCROLLED = """
    return [...document.querySelectorAll('.pst-scrollable-table-container')]
        .filter(table => table.scrollWidth > table.clientWidth + 1)
        .map(table => table.textContent.trim().slice(0, 60));
"""
"""Tables that are wider than their place."""


def assert_no_wider_than(opened, width):
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    opened.execute_async_script(LAID_OUT)
    wide = opened.execute_script("return document.documentElement.scrollWidth")
    outside, broken = opened.execute_script(OUTSIDE), opened.execute_script(BROKEN)
    torn, scrolled = opened.execute_script(TORN), opened.execute_script(SCROLLED)
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= width
    assert outside == []
    assert broken == []
    assert torn == []
    if width > 1000:
        assert scrolled == []


def assert_dark_mode_has_light_words(opened):
    opened.execute_script("document.documentElement.dataset.theme = 'dark'")
    colours = opened.execute_script(
        "const s = getComputedStyle(document.body);"
        "return [s.backgroundColor, getComputedStyle(document.querySelector('h1')).color]"
    )
    page, words = (sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in colours)
    assert page < 60
    assert words > 160
    figures = "document.querySelectorAll('.bd-article img:not([src*=plot_11])')"  # a photograph
    filters = opened.execute_script(f"return [...{figures}].map(i => getComputedStyle(i).filter)")
    assert all("invert" in found for found in filters)


@pytest.mark.parametrize("words", SOUGHT)
def test_in_a_browser_the_search_has_the_right_page_among_the_first_three(browser, words):
    from selenium.webdriver.support.ui import WebDriverWait

    open_page(browser, (SITE / "search.html").as_uri() + f"?q={quote(words)}")
    results = "return [...document.querySelectorAll('#search-results ul.search > li > a')]"
    said = "return document.querySelector('#search-results .search-summary')?.textContent"
    WebDriverWait(browser, 60).until(lambda b: "found" in (b.execute_script(said) or ""))
    links = browser.execute_script(f"{results}.map(a => a.getAttribute('href'))")
    pages = list(dict.fromkeys(re.split(r"[?#]", link)[0] for link in links))
    assert f"{SOUGHT[words]}.html" in pages[:3]


def test_the_search_index_leaves_out_pages_for_contributors():
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    titles = json.loads(re.search(r'"titles":(\[.*?\]),"titleterms"', index).group(1))
    assert not {"Architecture", "Changelog", "Contributing", "Project"} & set(titles)


def test_in_a_browser_equations_are_wider_than_high_and_in_the_middle(browser):
    browser.set_window_size(1200, 1000)
    open_page(browser, (SITE / "theory.html").as_uri())
    places = browser.execute_script(
        "return [...document.querySelectorAll('div.math')].map(d => {"
        "const line = d.getBoundingClientRect();"
        "const m = d.querySelector('math').getBoundingClientRect();"
        "return [m.width, m.height, (m.left + m.right - line.left - line.right) / 2]})"
    )
    assert len(places) >= 3, browser.page_source[:1000]
    for width, height, off in places:
        assert width > height
        assert abs(off) < 2

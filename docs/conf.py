"""How the site is built: ``make docs``. Nothing here asks the network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import nysboost

project = "NysBoost"
author = "The NysBoost developers"
copyright = "2026, the NysBoost developers"  # noqa: A001
version = release = nysboost.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "from_the_library",
    "mathml",
    "number_cells",
    "outputs",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext", "_templates", "generated/*.md", "gallery/*.ipynb", "Thumbs.db"]
suppress_warnings = ["config.cache"]
default_role = "py:obj"
today_fmt = "%Y-%m-%d"

# Words
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
myst_all_links_external = False

# Reference
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_attributes_as_param_list = True

# Pictures
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("nysboost",),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1000,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "capture_repr": (),
    "remove_config_comments": True,
    "plot_gallery": "True",
    "thumbnail_size": (640, 420),
}

# Looks
html_theme = "pydata_sphinx_theme"
html_title = "NysBoost"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_context = {"default_mode": "auto"}  # without it the theme complains in the console
html_theme_options = {
    "logo": {"text": "NysBoost"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# pages that stand alone have no neighbours to list
html_sidebars = {page: [] for page in ("index", "glossary")}


def _only_ours(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what estimators inherit from scikit-learn and operators from SciPy."""
    home = getattr(obj, "__module__", None) or getattr(
        getattr(obj, "fget", None), "__module__", None
    )
    return True if home and not home.startswith("nysboost") else None


def _readable_sizes(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: Any
) -> tuple[str | None, Any] | None:
    """Write sizes in bytes as people do."""
    return signature and (signature.replace(str(2**30), "'1 GB'"), returned)


def setup(app: Any) -> None:
    """Connect what is particular to this site."""
    app.connect("autodoc-skip-member", _only_ours)
    app.connect("autodoc-process-signature", _readable_sizes)

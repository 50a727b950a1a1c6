"""How Sphinx builds the site: `make docs`. Nothing is fetched from the network.

Formulas become MathML (`_ext/mathml.py`), which browsers draw by themselves, and there are no inventories
of other projects.
"""

import re
import sys
from pathlib import Path

import corral

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "corral"
author = "the corral developers"
project_copyright = "the corral developers, MIT licence"
version = release = corral.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "drawings",
    "live_report",
    "repository_pages",
]
exclude_patterns = ["examples", "_*"]
templates_path = ["_templates"]
nitpicky = False  # names of other projects have no pages here

# ---------------------------------------------------------------------------------------- Markdown pages

myst_enable_extensions = ["colon_fence", "dollarmath", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4

# ------------------------------------------------------------------------------------- names in Python

# scikit-learn makes these, and their docstrings point into its own guide.
REQUESTS = [f"set_{name}_request" for name in ("fit", "partial_fit", "predict", "score", "transform")]
# Other parts of the package use these; readers of the reference do not.
FOR_THE_PACKAGE = [
    "lines",
    "markers_of",
    "missing_phrases",
    "phrase",
    "renumbered",
    "value_text",
]

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say it
autodoc_member_order = "groupwise"
autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseEstimator,_MetadataRequester,BaseException,tuple",
    "exclude-members": ", ".join(REQUESTS + FOR_THE_PACKAGE),
}
toc_object_entries_show_parents = "hide"
default_role = "obj"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_exclude = ".linenos, .gp"  # prompts

# ----------------------------------------------------------------------------------------------- gallery

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [f"examples/{name}" for name in ("describe", "trust", "practice", "paper")],
    "within_subsection_order": "example_order.ExampleOrder",
    "filename_pattern": r"\.py",  # all of them are run
    "abort_on_example_error": True,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("corral",),
    "reference_url": {"corral": None},
    "copyfile_regex": "",
    "default_thumb_file": str(HERE / "_static" / "corral.svg"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
}

# ------------------------------------------------------------------------------------------------- pages

html_theme = "pydata_sphinx_theme"
html_title = "corral"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/corral.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "corral", "image_light": "_static/corral.svg", "image_dark": "_static/corral.svg"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages that have no others below them.
html_sidebars = {
    name: [] for name in ("changelog", "how_it_works", "index", "maintainers", "tutorial", "which_tool")
}


def without_foreign_references(app, what, name, obj, options, lines):
    """Keep the words of references that inherited docstrings of scikit-learn make to its own guide."""
    if (getattr(obj, "__module__", None) or "").startswith("sklearn."):
        lines[:] = [re.sub(r":ref:`([^`<]*?)\s*(?:<[^`>]*>)?`", r"\1", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", without_foreign_references, priority=400)  # before numpydoc

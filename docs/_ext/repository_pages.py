"""Takes the results of the experiments into the site, with their figures."""

import shutil
from pathlib import Path

from sphinx.application import Sphinx


def copy_experiments(app: Sphinx) -> None:
    """Copy pages and figures of the experiments to generated/experiments, those that have changed."""
    source = Path(app.srcdir).parent / "experiments"
    pages = {*source.rglob("*.md")} - {source / "READING.md"}  # which is a part of RESULTS.md
    for file in [*pages, *source.rglob("*.png")]:
        copy = Path(app.srcdir) / "generated" / "experiments" / file.relative_to(source)
        if not copy.exists() or copy.read_bytes() != file.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy_experiments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

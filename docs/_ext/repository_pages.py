"""Brings the results of the experiments and their figures into the site."""

from pathlib import Path

from sphinx.application import Sphinx

# Pages that are linked from other pages need not be in a table of contents.
IN_NO_LIST = b"---\norphan: true\n---\n\n"


def copy_experiments(app: Sphinx) -> None:
    """Copy new and changed pages and figures of the experiments to generated/experiments."""
    source = Path(app.srcdir).parent / "experiments"
    pages = {*source.rglob("*.md")} - {source / "READING.md"}  # READING.md is a part of RESULTS.md
    for file in [*pages, *source.rglob("*.png")]:
        copy = Path(app.srcdir) / "generated" / "experiments" / file.relative_to(source)
        contents = (IN_NO_LIST if file in pages else b"") + file.read_bytes()
        if not copy.exists() or copy.read_bytes() != contents:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(contents)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy_experiments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

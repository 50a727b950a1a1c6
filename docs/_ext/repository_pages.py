"""Takes the results of the experiments into the site, with their figures."""

from pathlib import Path

from sphinx.application import Sphinx

# Pages that others link to need not be in a list of contents.
IN_NO_LIST = b"---\norphan: true\n---\n\n"


def copy_experiments(app: Sphinx) -> None:
    """Copy pages and figures of the experiments to generated/experiments, those that have changed."""
    source = Path(app.srcdir).parent / "experiments"
    pages = {*source.rglob("*.md")} - {source / "READING.md"}  # which is a part of RESULTS.md
    for file in [*pages, *source.rglob("*.png")]:
        copy = Path(app.srcdir) / "generated" / "experiments" / file.relative_to(source)
        contents = (IN_NO_LIST if file in pages else b"") + file.read_bytes()
        if not copy.exists() or copy.read_bytes() != contents:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(contents)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy_experiments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

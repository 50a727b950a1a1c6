"""Links from the representation of estimators in notebooks to their pages in the reference."""

from __future__ import annotations

from importlib import metadata


def reference_template(module: str) -> str:
    """Address of the page of an estimator of a public module, as scikit-learn fills it in.

    It is empty where the site has no address.

    The site is what the metadata of the installed package call "Documentation".
    """
    try:
        entries: list[str] = metadata.metadata("corral").get_all("Project-URL", [])
    except metadata.PackageNotFoundError:  # imported from a folder, and never installed
        return ""
    addresses = dict(entry.split(", ", 1) for entry in entries)
    if "Documentation" not in addresses:
        return ""
    return addresses["Documentation"].rstrip("/") + f"/generated/{module}.{{estimator_name}}.html"


class InReference:
    """A public estimator: its representation in HTML links to its page in the reference.

    scikit-learn asks for the two attributes. It makes no link of an empty address, nor for a class that
    a user derives, since that has another module.
    """

    _doc_link_module = "corral"

    @property
    def _doc_link_template(self) -> str:
        # An estimator is documented where it is imported from, not where it is written.
        on_cluster = type(self).__module__.startswith("corral.dask")
        return reference_template("corral.dask" if on_cluster else "corral")

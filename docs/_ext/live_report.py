"""Writes reports/penguins.html, the report on the landing page, with the public names of corral."""

from pathlib import Path

from sklearn.model_selection import train_test_split
from sphinx.application import Sphinx

from corral import CorralClassifier, HeldOut, write_report
from corral.datasets import load_penguins


def write_penguins(path: Path) -> None:
    """Fit two thirds of the penguins and report on the others."""
    penguins, species = load_penguins(return_X_y=True)
    train, test, y_train, y_test = train_test_split(
        penguins, species, test_size=1 / 3, stratify=species, random_state=0
    )
    classifier = CorralClassifier(random_state=0).fit(train, y_train)
    held_out = HeldOut(classifier.classes_, y_test, classifier.predict_proba(test))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_report(classifier, test, y_test, path, held_out=held_out, source="Palmer penguins")


def write_once(app: Sphinx) -> None:
    path = Path(app.outdir) / "reports" / "penguins.html"
    if app.builder.format == "html" and not path.exists():
        write_penguins(path)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_once)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Who may import whom, read from the source: no module has to be imported for it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import corral

SOURCE = Path(__file__).parents[1] / "src" / "corral"

# Topmost first. A module imports only modules that stand before it.
ORDER = (
    "_kernels",
    "_rodeo",
    "_path",
    "_blocks",
    "_scale",
    "_validation",
    "_classes",
    "_contrast",
    "_explain",
    "datasets",
    "_density",
    "_lazy",
    "_classifier",
    "_selector",
    "_search",
    "_lspc",
    "_sample_size",
    "_files",
    "_model_file",
    "_tables",
    "_rows",
    "_evaluate",
    "dask",
    "_display",
    "report",
    "_console",
    "_options",
    "cli",
)
COMPILERS = ("numba", "llvmlite")


def imports(tree: ast.Module, package: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the dotted path of whatever is imported, at the top of the file or deeper.

    `from a.b import c` yields a, b, c: the path is the same whether c is a module or a name in one.
    `package` is the one that relative imports start from.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            here = package.split(".")
            start = here[: len(here) - node.level + 1] if node.level else []
            inside = node.module.split(".") if node.module else []
            for alias in node.names:
                yield node.lineno, [*start, *inside, alias.name]


def is_plain(node: ast.stmt) -> bool:
    """Tell whether a statement of __init__.py imports, or sets the names that a package has."""
    if isinstance(node, ast.Assign):
        names = {"__all__", "__version__", "__getattr__", "__dir__"}
        targets = [name for t in node.targets for name in (t.elts if isinstance(t, ast.Tuple) else [t])]
        return all(isinstance(name, ast.Name) and name.id in names for name in targets)
    return isinstance(node, ast.Import | ast.ImportFrom)


def violations(source: str, file: str) -> list[str]:
    """Say what is wrong with the imports of one file; `file` is its path below src/corral."""
    tree = ast.parse(source)
    parts = Path(file).with_suffix("").parts
    package = ".".join(["corral", *parts[:-1]])
    layer = None if file == "__init__.py" else parts[0]
    found = []

    if layer is None:
        body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
        found += [
            f"line {node.lineno}: __init__.py holds only its docstring, imports, names and what loads them"
            for node in body
            if not is_plain(node)
        ]
    elif layer not in ORDER:
        found.append(
            f"corral.{layer} has no layer: add it to ORDER in tests/test_layers.py, "
            "below all that it imports and above all that imports it"
        )

    for line, (top, *rest) in imports(tree, package):
        path = ".".join([top, *rest])
        if top in COMPILERS and layer != "_kernels":
            found.append(f"line {line}: {path}: only corral._kernels imports {top}")
        if top == "sklearn" and any(part.startswith("_") for part in rest):
            found.append(f"line {line}: {path} is private to scikit-learn")
        if top == "corral" and layer in ORDER:
            if not rest or rest[0] not in ORDER:
                found.append(f"line {line}: {path}: import from the module that defines the name")
            elif ORDER.index(rest[0]) > ORDER.index(layer):
                found.append(
                    f"line {line}: corral.{layer} stands above corral.{rest[0]}, so cannot import it"
                )
    return found


FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


def test_the_package_is_where_this_file_looks_for_it() -> None:
    assert "_kernels.py" in FILES


@pytest.mark.parametrize("file", FILES)
def test_module_keeps_to_its_layer(file: str) -> None:
    assert violations((SOURCE / file).read_text(encoding="utf-8"), file) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("_rodeo.py", "from corral import _kernels"),
        ("_rodeo.py", "from corral._kernels import sweep"),
        ("_rodeo.py", "from ._kernels import sweep"),
        ("_kernels.py", "import numba\nfrom llvmlite import ir"),
        ("_density.py", "import corral._rodeo as rodeo\nfrom . import _scale"),
        ("_density.py", "from sklearn.utils.validation import validate_data"),
        ("dask.py", "import dask\nfrom dask import array"),
        ("report/__init__.py", "from ._page import render\nfrom .._display import Display"),
        ("report/_page.py", "from . import _svg\nfrom .. import _explain"),
        ("__init__.py", '"""Text."""\nfrom corral.cli import main\n__all__ = ["main"]\n__version__ = "1"'),
    ],
)
def test_accepts(file: str, source: str) -> None:
    assert violations(source, file) == []


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("_kernels.py", "from corral import _rodeo", "corral._kernels stands above corral._rodeo"),
        ("_kernels.py", "from corral._rodeo import sweep", "corral._kernels stands above corral._rodeo"),
        ("_kernels.py", "import corral._rodeo", "corral._kernels stands above corral._rodeo"),
        ("_kernels.py", "from ._rodeo import sweep", "corral._kernels stands above corral._rodeo"),
        ("_kernels.py", "from . import _rodeo", "corral._kernels stands above corral._rodeo"),
        ("_explain.py", "def f():\n    from .datasets import g", "line 2: corral._explain stands above"),
        ("_display.py", "if TYPE_CHECKING:\n    from .report import Page", "corral._display stands above"),
        ("report/_page.py", "from ..cli import main", "corral.report stands above corral.cli"),
        ("cli.py", "import corral", "line 1: corral: import from the module that defines"),
        ("cli.py", "from corral import RodeoClassifier", "import from the module that defines"),
        ("cli.py", "from . import RodeoClassifier", "import from the module that defines"),
        ("_rodeo.py", "import numba.typed", "only corral._kernels imports numba"),
        ("_rodeo.py", "from llvmlite import ir", "only corral._kernels imports llvmlite"),
        ("__init__.py", "from numba import njit", "only corral._kernels imports numba"),
        ("_density.py", "import sklearn._config", "sklearn._config is private"),
        ("_density.py", "from sklearn.utils._tags import get_tags", "utils._tags.get_tags is private"),
        ("_density.py", "from sklearn.utils import _tags", "sklearn.utils._tags is private"),
        ("_helpers.py", "", "corral._helpers has no layer: add it to ORDER in tests/test_layers.py"),
        ("helpers/_x.py", "", "corral.helpers has no layer"),
        ("__init__.py", "import os\nif os.name: pass", "line 2: __init__.py holds only"),
        ("__init__.py", "def load(name): ...", "__init__.py holds only"),
        ("__init__.py", "version = '1'", "__init__.py holds only"),
        ("__init__.py", "print('hello')", "__init__.py holds only"),
    ],
)
def test_complains(file: str, source: str, complaint: str) -> None:
    [said] = violations(source, file)
    assert complaint in said


def test_the_stub_lists_what_it_imports() -> None:
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    names = sorted(path[-1] for _, path in imports(stub, "corral"))
    [listed] = [ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)]
    assert listed == names == corral.__all__


def test_public_names_are_loaded_when_asked_for() -> None:
    code = (
        "import sys, corral; assert 'numpy' not in sys.modules; "
        "from corral import *; assert RodeoClassifier.__module__ == 'corral._classifier'; "
        "assert set(corral.__all__) <= set(dir(corral)); corral.nothing"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "AttributeError: No corral attribute nothing"

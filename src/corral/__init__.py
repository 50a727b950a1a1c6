"""Sparse kernel density classification that explains itself."""

import lazy_loader

__version__ = "0.2.0"

# The public names stand in __init__.pyi, for type checkers as well. A module is loaded when one of its names
# is first asked for, or `corral --help` would wait for scikit-learn and numba.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

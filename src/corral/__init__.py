"""Classification by class densities, with explanations of classes and predictions."""

import lazy_loader

__version__ = "0.2.0"

# The public names are listed in __init__.pyi, which type checkers read as well. A module is imported when one
# of its names is first used, so that `corral --help` does not wait for scikit-learn and numba.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

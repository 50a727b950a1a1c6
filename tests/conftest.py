"""Settings that all tests share."""

import os

from hypothesis import settings

# scikit-learn skips its array API checks unless scipy, which reads this when it is imported, checks its input
# as strictly as the standard asks for.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# No deadline: the first example of a property may have to compile a kernel. The same examples every time
# where a failure would block others; new ones on a developer's machine.
settings.register_profile("corral", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("corral")

"""Settings that all tests share."""

import os

from hypothesis import settings

# No deadline: the first example of a property may have to compile a kernel. The same examples every time
# where a failure would block others; new ones on a developer's machine.
settings.register_profile("corral", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("corral")

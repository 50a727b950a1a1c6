"""Settings that all tests share."""

from hypothesis import settings

# No deadline: the first example of a property may have to compile a kernel.
settings.register_profile("corral", deadline=None)
settings.load_profile("corral")

"""Settings of the layout tests: no deadlines, as other work may be running on the machine."""

from hypothesis import settings

settings.register_profile("layouts", deadline=None)
settings.load_profile("layouts")

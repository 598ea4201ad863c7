"""AMD's back end (see `compiler/backends.py`)."""

"""`python -m weft ...`: see weft.cli."""

from .cli import main

raise SystemExit(main())

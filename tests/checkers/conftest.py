"""The files of `users` are for type checkers: nothing imports them."""

collect_ignore_glob = ["users/*"]

"""The program of another package's test is run by that test, in a process that has the package."""

collect_ignore = ["acme"]

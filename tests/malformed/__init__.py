"""Malformed kernels, IR texts and layout expressions: Weft answers each with an error of its own, and soon.

`make malformed SEEDS=0:5000` makes that many of each kind from good ones, by rule; a seed is always the same input
of one version of Weft: names of the language are among what is put in.
"""

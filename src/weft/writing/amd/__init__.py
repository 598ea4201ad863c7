"""AMD's words of Gluon: where its layouts are, and the matrix instructions of its processors."""

from weft.layouts import AMDMFMALayout, AMDWMMALayout

from .. import layouts, words

WITH_MFMA = {1: "cdna3", 2: "cdna3", 3: "cdna3", 4: "cdna4"}
WITH_WMMA = {1: "rdna3", 2: "rdna4", 3: "gfx1250"}
"""Gluon's modules, by the version of a layout."""

layouts.PLACES[AMDMFMALayout] = layouts.PLACES[AMDWMMALayout] = "amd."
layouts.STEMS[AMDMFMALayout], layouts.STEMS[AMDWMMALayout] = "mfma", "wmma"
words.OF_LAYOUTS[AMDMFMALayout] = lambda layout: f"gl.amd.{WITH_MFMA[layout.version]}.mfma"
words.OF_LAYOUTS[AMDWMMALayout] = lambda layout: f"gl.amd.{WITH_WMMA[layout.version]}.wmma"

"""triton.tools.triton_to_gluon_translator: of Triton's translator to Gluon, what orders definitions.

The rest are names that say, when they are used, that Weft has no such translator (`weft.compat.absent`).
"""

"""What layout IR has for AMD's GPUs: some operations of Triton's dialect `amdg`."""

from . import amdg as amdg, mbarriers as mbarriers, scaled as scaled, tdm as tdm

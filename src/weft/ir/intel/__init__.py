"""What layout IR has for Intel's GPUs: 2D blocks of memory."""

from . import blocks as blocks

"""What layout IR has for NVIDIA's GPUs: Triton's dialect `ttng`, its text and its rules."""

from . import check as check, forms as forms, ttng as ttng

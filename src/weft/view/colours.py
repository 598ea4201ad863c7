"""Colours of pictures: hue a warp, shade a lane.

Colours are chosen in OKLCH, where equal steps of lightness look equal (B. Ottosson, A perceptual color space for image
processing, 2020), and turned into sRGB. page/colours.js does the same.
"""

from __future__ import annotations

import math

RGB = tuple[int, int, int]


def oklch(lightness: float, chroma: float, hue: float) -> RGB:
    """The sRGB colour nearest to a lightness from 0 to 1, a chroma, and a hue in degrees.

    >>> oklch(1, 0, 0), oklch(0, 0, 0)
    ((255, 255, 255), (0, 0, 0))
    """
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return tuple(_gamma(x) for x in linear)  # type: ignore[return-value]


def _gamma(x: float) -> int:
    x = min(1.0, max(0.0, x))
    x = 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055
    return math.floor(255 * x + 0.5)


def place_colour(warp: int, warps: int, lane: int, lanes: int) -> RGB:
    """The colour of a place in registers."""
    hue = (255 + 360 * warp / max(warps, 1)) % 360
    return oklch(0.93 - 0.43 * lane / max(lanes - 1, 1), 0.115, hue)


def bank_colour(bank: int, banks: int) -> RGB:
    """The colour of a bank of shared memory."""
    return oklch(0.90 - 0.25 * (bank % 2), 0.09, 360 * bank / banks)


def input_colour(index: int) -> RGB:
    """The colour of an input dimension, in pictures of matrices."""
    return oklch(0.80, 0.12, (255 + 137.5 * index) % 360)


def blank() -> RGB:
    """Where nothing is."""
    return (238, 238, 240)


def ink(fill: RGB) -> str:
    """Black or white, whichever can be read better on a colour (WCAG 2.2, relative luminance)."""
    parts = [x / 255 for x in fill]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"


def hexadecimal(colour: RGB) -> str:
    """#rrggbb."""
    return "#" + "".join(f"{part:02x}" for part in colour)

// Colours as in weft/view/colours.py: hue a warp, shade a lane.

function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const gamma = (x) => {
    x = Math.min(1, Math.max(0, x));
    return Math.floor(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055) + 0.5);
  };
  return [
    gamma(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    gamma(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    gamma(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function placeColour(warp, warps, lane, lanes) {
  return oklch(0.93 - (0.43 * lane) / Math.max(lanes - 1, 1), 0.115, (255 + (360 * warp) / Math.max(warps, 1)) % 360);
}

const bankColour = (bank, banks) => oklch(0.9 - 0.25 * (bank % 2), 0.09, (360 * bank) / banks);
const inputColour = (index) => oklch(0.8, 0.12, (255 + 137.5 * index) % 360);
const wavefrontColour = (index) => oklch(0.8 - 0.12 * (Math.floor(index / 5) % 3), 0.13, (145 + 72 * index) % 360);
const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

function ink([r, g, b]) {
  const linear = [r, g, b].map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? "#000" : "#fff";
}

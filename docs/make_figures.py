"""Draws docs/head_schedule.svg: the heads of each layer for a uniform and a progressive schedule of one size.

    python3 docs/make_figures.py
"""
import pathlib

WIDTH, ROW, GAP, D_MODEL = 300, 15, 3, 768
COLOURS = {256: "#0072b2", 128: "#009e73", 96: "#e69f00", 64: "#d55e00"}


def panel(x, title, schedule):
    layers = [heads for heads, count in schedule for _ in range(count)]
    parts = [f'<text x="{x + WIDTH / 2}" y="18" text-anchor="middle" font-weight="bold">{title}</text>']
    for i, heads in enumerate(layers):
        y = 34 + (len(layers) - 1 - i) * (ROW + GAP)
        width = WIDTH / heads
        parts += [f'<rect x="{x + h * width + 1:.1f}" y="{y}" width="{width - 2:.1f}" height="{ROW}" rx="2" '
                  f'fill="{COLOURS[D_MODEL // heads]}"/>' for h in range(heads)]
        parts.append(f'<text x="{x + WIDTH + 8}" y="{y + 12}">{heads} x {D_MODEL // heads}</text>')
        if x < 100:
            parts.append(f'<text x="{x - 8}" y="{y + 12}" text-anchor="end">{i + 1}</text>')
    return parts


rows = panel(60, "uniform: 12x12", [(12, 12)]) + panel(450, "prism: 3x2,6x2,8x2,12x6", [(3, 2), (6, 2), (8, 2), (12, 6)])
rows.append('<text transform="translate(18,150) rotate(-90)" text-anchor="middle">layer</text>')
height = 34 + 12 * (ROW + GAP) + 26
rows.append(f'<text x="405" y="{height - 8}" text-anchor="middle">heads x width; the same 768 features, parameters and FLOPs in every row</text>')
svg = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 {height}" font-family="sans-serif" font-size="12" fill="#808080" '
       'role="img" aria-label="Heads of each of twelve layers: twelve of width 64 throughout, or three of width 256 first and twelve '
       'of width 64 last">\n' + "\n".join(rows) + "\n</svg>\n")
pathlib.Path(__file__).with_name("head_schedule.svg").write_text(svg)

"""Curves of accuracy over epochs as an SVG, without any library: the same figures make the same file."""

import math
import statistics
from html import escape

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 58, 200, 40, 48
# Okabe and Ito's colours, which the colour-blind can tell apart.
COLOURS = ("#000000", "#0072b2", "#009e73", "#e69f00", "#d55e00", "#cc79a7")
INK, FAINT = "#333333", "#dddddd"
FONT = "font-family=\"system-ui, 'DejaVu Sans', sans-serif\""


class Axes:
    """Where an epoch and an accuracy are in the picture."""

    def __init__(self, epochs, lowest):
        self.epochs = epochs
        self.bottom = min(0.9, math.floor(10 * lowest) / 10)

    def x(self, epoch):
        span = max(1, self.epochs - 1)
        return LEFT + (epoch - 1) / span * (WIDTH - LEFT - RIGHT)

    def y(self, accuracy):
        return HEIGHT - BOTTOM - (accuracy - self.bottom) / (1 - self.bottom) * (HEIGHT - TOP - BOTTOM)

    def path(self, accuracies, first=1, step=1):
        return " ".join(f"{self.x(first + step * i):.1f},{self.y(a):.1f}" for i, a in enumerate(accuracies))


def text(x, y, words, size=12, anchor="start", colour=INK, extra=""):
    style = f'font-size="{size}" text-anchor="{anchor}" fill="{colour}"{extra}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour, extra=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{extra}/>'


def epoch_ticks(epochs):
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if epochs / step <= 10 or step == 1000)
    return sorted({1, *range(step, epochs + 1, step)})


def grid(axes):
    parts = []
    spacing = 0.05 if axes.bottom >= 0.7 else 0.1
    for i in range(round((1 - axes.bottom) / spacing) + 1):
        accuracy = axes.bottom + i * spacing
        y = axes.y(accuracy)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, FAINT))
        parts.append(text(LEFT - 8, y + 4, f"{100 * accuracy:.0f}", anchor="end"))
    base = HEIGHT - BOTTOM
    for epoch in epoch_ticks(axes.epochs):
        x = axes.x(epoch)
        parts.append(line(x, base, x, base + 4, INK))
        parts.append(text(x, base + 18, str(epoch), anchor="middle"))
    parts.append(line(LEFT, base, WIDTH - RIGHT, base, INK))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "epoch", anchor="middle"))
    turned = f' transform="rotate(-90 16 {(TOP + base) / 2:.1f})"'
    parts.append(text(16, (TOP + base) / 2, "accuracy, %", anchor="middle", extra=turned))
    return parts


def curve(axes, accuracies_of_seeds, colour):
    """The mean over seeds, and behind it a band from the lowest to the highest seed."""
    by_epoch = list(zip(*accuracies_of_seeds, strict=True))
    means = [statistics.fmean(values) for values in by_epoch]
    parts = []
    if len(accuracies_of_seeds) > 1:
        low, high = [min(v) for v in by_epoch], [max(v) for v in by_epoch]
        outline = f"{axes.path(high)} {axes.path(low[::-1], first=len(low), step=-1)}"
        parts.append(f'<polygon points="{outline}" fill="{colour}" fill-opacity="0.13" stroke="none"/>')
    style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"'
    parts.append(f'<polyline points="{axes.path(means)}" {style}/>')
    if len(means) == 1:
        parts.append(f'<circle cx="{axes.x(1):.1f}" cy="{axes.y(means[0]):.1f}" r="3" fill="{colour}"/>')
    return parts


def legend(series):
    x, parts = WIDTH - RIGHT + 18, []
    for i, (title, _) in enumerate(series):
        y = TOP + 12 + 22 * i
        parts.append(line(x, y - 4, x + 24, y - 4, COLOURS[i % len(COLOURS)], ' stroke-width="2.5"'))
        parts.append(text(x + 32, y, title, size=13))
    return parts


def draw(title, series):
    """`series`: (title, one list of accuracies per seed) of each line; all lists are as long as there are epochs."""
    every = [accuracy for _, seeds in series for accuracies in seeds for accuracy in accuracies]
    axes = Axes(max(len(accuracies) for _, seeds in series for accuracies in seeds), min(every))
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {FONT}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(LEFT, 22, title, size=14),
        *grid(axes),
    ]
    for i, (_, seeds) in reversed(list(enumerate(series))):  # the first one lies on top
        parts += curve(axes, seeds, COLOURS[i % len(COLOURS)])
    return "\n".join([*parts, *legend(series), "</svg>"]) + "\n"

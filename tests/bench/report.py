"""What was measured: one line per figure on the terminal, all of it as JSON, and curves as pictures."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import grpc

FOLDER = Path("build/bench")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number."""

    name: str
    value: float
    unit: str
    target: str
    """What it must reach, in words; empty when it is for orientation only."""
    passed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points to draw."""

    label: str
    points: Sequence[tuple[float, float]]


class Report:
    """Takes figures as they come."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        FOLDER.mkdir(parents=True, exist_ok=True)

    def info(self, name: str, value: float, unit: str) -> None:
        """A number that nothing is asked of."""
        self._take(Figure(name=name, value=value, unit=unit, target="", passed=None))

    def at_most(self, name: str, value: float, unit: str, limit: float) -> None:
        """A number that must not be larger than the limit."""
        self._take(Figure(name=name, value=value, unit=unit, target=f"<= {limit:g}", passed=value <= limit))

    def at_least(self, name: str, value: float, unit: str, limit: float) -> None:
        """A number that must not be smaller than the limit."""
        self._take(Figure(name=name, value=value, unit=unit, target=f">= {limit:g}", passed=value >= limit))

    def say(self, text: str) -> None:
        """How something is measured."""
        print(f"# {text}", flush=True)

    def draw(self, name: str, x_label: str, y_label: str, curves: Sequence[Curve], *, log_x: bool = False) -> None:
        """Write a picture."""
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt

        figure, axes = plt.subplots(figsize=(7, 4))
        for curve in curves:
            axes.plot(*zip(*curve.points, strict=True), label=curve.label, marker="o" if len(curve.points) < 20 else "")
        if log_x:
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.set(xlabel=x_label, ylabel=y_label, title=name)
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
        figure.tight_layout()
        figure.savefig(FOLDER / f"{name}.png", dpi=110)
        plt.close(figure)

    def save(self, *, whole: bool) -> None:
        """Write the JSON. ``whole``: all was measured; otherwise figures of earlier runs stay beside those of this one."""
        path = FOLDER / "figures.json"
        earlier = json.loads(path.read_bytes())["figures"] if path.exists() and not whole else []
        measured = {figure.name for figure in self.figures}
        kept = [figure for figure in earlier if figure["name"] not in measured]
        document = {"machine": _machine(), "figures": [*kept, *map(asdict, self.figures)]}
        path.write_text(json.dumps(document, indent=1) + "\n")

    def missed(self) -> list[Figure]:
        """Figures that fall short."""
        return [figure for figure in self.figures if figure.passed is False]

    def _take(self, figure: Figure) -> None:
        self.figures.append(figure)
        verdict = {None: "", True: "PASS", False: "FAIL"}[figure.passed]
        target = f"(target {figure.target})" if figure.target else ""
        print(f"{figure.name:58s} {_rounded(figure.value):>10s} {figure.unit:10s} {target:20s} {verdict}".rstrip(), flush=True)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1 if share else 0)]


def median(values: Sequence[float]) -> float:
    """The middle value, the lower one of two."""
    return quantile(values, 0.5)


def exponent(points: Mapping[float, float] | Sequence[tuple[float, float]]) -> float:
    """Slope of cost over size on logarithmic axes, by least squares: 1 is linear, 2 is quadratic."""
    pairs = list(points.items()) if isinstance(points, Mapping) else list(points)
    xs, ys = [math.log(x) for x, _ in pairs], [math.log(max(y, 1e-9)) for _, y in pairs]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / sum((x - x_mean) ** 2 for x in xs)


def _rounded(value: float) -> str:
    if value and abs(value) < 10:
        return f"{value:.3g}"
    return f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def _machine() -> dict[str, object]:
    return {
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
        "load_average": os.getloadavg(),
    }

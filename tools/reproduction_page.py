"""Put the outcome of `nysboost reproduce` into docs/reproduction.md and the README.

    python tools/reproduction_page.py out/reproduction

The page is the folder's `report.md` between an introduction and a guide to reading it, which stand
here, without the folded tables, which are in the report itself. The README has Figure 1a and the
sentence below it, from `simulation/simulation.csv`.
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from nysboost.compare.charts import STYLE
from nysboost.paper.figures import AXIS, find_look
from nysboost.paper.replicate import BASELINE

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- reproduction: front -->", "<!-- end of reproduction -->"
READING = "columns-columns"
FRONT = ("URB-mean", "URB-med", "URB-SF", "RRB-mean", "RRB-med", "RRB-SF", BASELINE)
"""The methods of Figure 1a, and the reading of the validation sets that is shown."""

FIGURE = re.compile(r"\]\(figures/figure-(?P<number>\d)-(?P<reading>[\w-]+)\.png\)")
FOLDED = re.compile(r"<details>\n.*?</details>\n+", re.DOTALL)

INTRODUCTION = """\
# The paper's experiments, run again

This page repeats Section 3 of *Boosting Nyström Method* (Hamm, Lu, Ouyang, Zhang). It shows the
five figures, and says which of 26 statements of the paper hold. No setting was tuned to make a
statement hold.

"""

GUIDE = """\
## How to read it

- **Replicates.** A replicate draws its own points (1000 from the normal distribution, or 4000 of a
  data set) and its own random numbers. Within a replicate, all methods share the first learner, V1
  and V2. The settings are the paper's: m = 120, k = 50, s = 600, v1 = v2 = 20, σ = 5, η = 0.01 and
  p up to 20 on real data; m = k = 10, s = 100, σ = 1 on the simulation. MNIST is divided by 255;
  Covertype and Pendigits are standardised; GloVe and IJCNN are as distributed. GloVe is a uniform
  sample of 16,000 of its 400,000 vectors.
- **Four readings.** The paper writes G[I, I] for a validation set, which is a square block, but
  also speaks of “columns in the validation sets”. We ran both readings of V, whose residual is
  clustered, and both readings of V1 and V2, on which weights are fitted and tuned. The figures on
  this page use whole columns for all three.
- **Methods in the figures.** The paper's source does not contain its pictures. Our figures show
  the methods that the paper's text discusses.
- **Runtime** is the processor time of this implementation with one thread. An ensemble does the
  same work as boosting without the clustering, so boosting cannot be faster with the same number
  of learners.
- **Words of the paper.** We read “close” as within 10 %, and “dramatically slower” as twice the
  time. If a statement bounds a property, all replicates are used to test it.

## Run it yourself

`make reproduction` makes this page. `nysboost reproduce simulation --quick` runs a small version in
a minute. [Reproduce the paper](reproduce.md) explains both.
"""


def make_page(report: str) -> str:
    """Return the text of the page from that of the report."""
    summary, heading, rest = report.partition("\n## The figures")
    shown = FIGURE.sub(lambda m: f"](figures/reproduction-{m['number']}.png)", heading + rest)
    details, _, data = shown.rpartition("\n## Data sets")
    decided = details.partition("\n## How they are decided")
    rule = decided[2].partition("\n## ")[0]  # the presets, with their settings, are in the report
    shown = f"{decided[0]}{decided[1]}{rule}\n## Data sets{data}"
    shown = FOLDED.sub("", shown).replace(".png)\n![", ".png)\n\n![")
    verdicts = "## Which statements hold"
    shown = shown.replace(verdicts, f"{_only_headline(summary)}\n\n{verdicts}")
    shown, _, version = shown.rpartition("\nMade with ")
    return f"{INTRODUCTION}Made with {version.strip()}\n\n{shown.strip()}\n\n{GUIDE}"


def _only_headline(summary: str) -> str:
    """Return the first sentence of the report's summary."""
    return summary.splitlines()[1].removeprefix("- ")


def copy_figures(out: Path, folder: Path) -> None:
    """Copy the figures that the report shows beside the page."""
    folder.mkdir(exist_ok=True)
    for found in FIGURE.finditer((out / "report.md").read_text(encoding="utf-8")):
        name = f"figure-{found['number']}-{found['reading']}.png"
        shutil.copyfile(out / "figures" / name, folder / f"reproduction-{found['number']}.png")


@dataclass(frozen=True)
class Curve:
    """A method's mean error with 1, 2, … learners, and its standard error."""

    method: str
    learners: list[int]
    mean: list[float]
    standard_error: list[float]
    replicates: int


def read_curves(path: Path) -> dict[str, Curve]:
    """Return the curves of Figure 1a from the table of a preset."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["reading"] == READING]

    curves = {}
    for method in FRONT:
        mine = [row for row in rows if row["method"] == method]
        curves[method] = Curve(
            method,
            learners=[int(row["learners"]) for row in mine],
            mean=[float(row["mean"]) for row in mine],
            standard_error=[float(row["standard_error"]) for row in mine],
            replicates=int(mine[0]["replicates"]),
        )
    return curves


def draw_front(curves: dict[str, Curve], path: Path) -> None:
    """Draw Figure 1a, with letters that can be read on a phone."""
    with mpl.rc_context(STYLE | {"font.size": 13, "legend.fontsize": 12}):
        figure = Figure((6.4, 4.6), layout="constrained")
        axes = figure.add_subplot()
        for curve in curves.values():
            look = find_look(curve.method) | {"linewidth": 1.8, "markersize": 4}
            axes.plot(curve.learners, curve.mean, label=curve.method, **look)
            low = np.subtract(curve.mean, curve.standard_error)
            high = np.add(curve.mean, curve.standard_error)
            axes.fill_between(
                curve.learners, low, high, color=look["color"], alpha=0.15, linewidth=0
            )
        axes.set(xlabel="number of learners", ylabel=AXIS["error"], xticks=range(2, 21, 2))
        axes.legend(frameon=False, ncols=2)
        figure.savefig(path, dpi=150)


def say_front(curves: dict[str, Curve]) -> str:
    """Return the sentence of the README: how many learners reach the ensemble's error."""
    boosting, ensemble = curves["URB-mean"], curves[BASELINE]
    most = ensemble.learners[-1]
    enough = next(
        learners
        for learners, error in zip(boosting.learners, boosting.mean, strict=True)
        if error <= ensemble.mean[-1]
    )
    sentence = (
        f"Figure 1a of the paper shows means of {ensemble.replicates} replicates. **URB-mean needs "
        f"{enough} learners (error {boosting.mean[enough - 1]:.4f}) to reach the error that the "
        f"ensemble has with {most} ({ensemble.mean[-1]:.4f})**; with {most} learners, its error is "
        f"{boosting.mean[-1]:.4f}. [The paper's experiments, run again](docs/reproduction.md) has "
        "all five figures, and says which of the paper's 26 statements hold."
    )
    return textwrap.fill(sentence, 120) + "\n"


def with_front(readme: str, sentence: str) -> str:
    """Return the README with the sentence in its place."""
    before, _, rest = readme.partition(BEGIN)
    return f"{before}{BEGIN}\n{sentence}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    copy_figures(folder, PAGE.parent / "figures")
    PAGE.write_text(make_page((folder / "report.md").read_text(encoding="utf-8")), encoding="utf-8")

    front = read_curves(folder / "simulation" / "simulation.csv")
    draw_front(front, PAGE.parent / "figures" / "figure-1a.png")
    text = with_front(README.read_text(encoding="utf-8"), say_front(front))
    README.write_text(text, encoding="utf-8")

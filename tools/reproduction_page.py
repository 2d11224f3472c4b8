"""Put the outcome of `nysboost reproduce` into docs/reproduction.md, with the paper's five figures.

    python tools/reproduction_page.py out/reproduction

The page is the folder's `report.md` between an introduction and a guide to reading it, which stand
here, without the folded tables, which are in the report itself.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"
FIGURE = re.compile(r"\]\(figures/figure-(?P<number>\d)-(?P<reading>[\w-]+)\.png\)")
FOLDED = re.compile(r"<details>\n.*?</details>\n+", re.DOTALL)

INTRODUCTION = """\
# The paper's experiments, run again

Section 3 of *Boosting Nyström Method* (Hamm, Lu, Ouyang, Zhang): its five figures, and which of
its 26 statements hold. Nothing was tuned to make one hold. `make reproduction` makes this page;
the same with options of your own is a how-to, [below](#run-it-yourself).

"""

GUIDE = """\
## How to read it

- **Replicates.** Each draws its own points (1000 from the normal distribution, or 4000 of a data
  set) and its own random numbers, and its first learner, V1 and V2 are shared by all methods. The
  settings are the paper's: m = 120, k = 50, s = 600, v1 = v2 = 20, σ = 5, η = 0.01 and p up to 20
  on real data; m = k = 10, s = 100, σ = 1 on the simulation. MNIST is divided by 255; Covertype and
  Pendigits are standardised; GloVe and IJCNN are as distributed. GloVe is a uniform sample of
  16,000 of its 400,000 vectors.
- **Four readings.** The paper writes G[I, I] for a validation set, a square block, and speaks of
  “columns in the validation sets”. V, whose residual is clustered, and V1 with V2, on which weights
  are fitted and tuned, are each read both ways. The figures here have all of them as whole columns.
- **What the figures draw.** The paper's source does not contain its pictures; the methods drawn
  are those that its text discusses.
- **Runtime** is processor time with one thread of this implementation. An ensemble does the same
  work as boosting without the clustering, so that boosting cannot be faster at equal learners.
- **“Close”** means within 10 %, **“dramatically slower”** twice the time. A property that is to be
  below a bound is tested with all replicates.

## Run it yourself

```sh
export NYSBOOST_DATA=folder/with/the/npz/files    # otherwise downloaded
nysboost reproduce simulation --quick             # a small version, in a minute
nysboost reproduce simulation --variants stated   # the paper's, 100 replicates
nysboost reproduce all --variants stated --replicates 30 --replicates simulation=100
```

A run that was stopped goes on from its records, and the numbers do not depend on `--jobs`.
`--reading` and `--validation` choose how V, and V1 and V2, are read; `--max-minutes` stops at a
time; `--records-only` and `--report-only` separate the computation from its report, which may be
made on another machine. `report.html` in the folder has the methods' errors, p-values and what
decided each statement; `figures` has every figure under every reading, as PNG, SVG and PDF.
"""


def make_page(report: str) -> str:
    """Return the text of the page from that of the report."""
    summary, heading, rest = report.partition("\n## The figures")
    shown = FIGURE.sub(lambda m: f"](figures/reproduction-{m['number']}.png)", heading + rest)
    shown = FOLDED.sub("", shown).replace(".png)\n![", ".png)\n\n![")
    verdicts = "## Which statements hold"
    shown = shown.replace(verdicts, f"{_only_headline(summary)}\n\n{verdicts}")
    made_with = shown.rfind("\nMade with ")
    return INTRODUCTION + shown[:made_with].strip() + "\n\n" + GUIDE


def _only_headline(summary: str) -> str:
    """Return the first sentence of the report's summary."""
    return summary.splitlines()[1].removeprefix("- ")


def copy_figures(out: Path, folder: Path) -> None:
    """Copy the figures that the report shows beside the page."""
    folder.mkdir(exist_ok=True)
    for found in FIGURE.finditer((out / "report.md").read_text(encoding="utf-8")):
        name = f"figure-{found['number']}-{found['reading']}.png"
        shutil.copyfile(out / "figures" / name, folder / f"reproduction-{found['number']}.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    copy_figures(folder, PAGE.parent / "figures")
    PAGE.write_text(make_page((folder / "report.md").read_text(encoding="utf-8")), encoding="utf-8")

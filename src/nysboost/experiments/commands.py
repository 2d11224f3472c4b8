"""The three commands and their options."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from nysboost.experiments import console, datasets
from nysboost.experiments.user_error import UserError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Low-rank approximation of kernel matrices: the paper's experiments, and your data.",
)


def _tell_version(asked: bool) -> None:
    if asked:
        from nysboost._version import __version__

        print(f"nysboost {__version__}")
        raise typer.Exit


DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder with the data sets' .npz files; else NYSBOOST_DATA, else downloads."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
Out = Annotated[Path, typer.Option(help="Folder for records, figures and the report.")]


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Low-rank approximation of kernel matrices: your data, and the paper's experiments."""


@app.command()
def reproduce(
    presets: Annotated[
        list[str], typer.Argument(help="Names of presets, “all”, or .toml files of your own.")
    ],
    replicates: Annotated[
        list[str] | None,
        typer.Option(help="How many; PRESET=N for one preset. May be given more than once."),
    ] = None,
    max_learners: Annotated[int | None, typer.Option(min=1, help="Most learners p.")] = None,
    variants: Annotated[
        str,
        typer.Option(
            help="Methods, separated by commas, or “stated”: those that the paper draws or speaks "
            "of. ensemble-ridge always runs."
        ),
    ] = "all",
    reading: Annotated[
        Literal["both", "columns", "square"],
        typer.Option(help="The reading of V: whole columns, a square block, or both."),
    ] = "both",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    seed: Seed = 0,
    out: Out = Path("results"),
    data_dir: DataDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version, in a minute.")] = False,
    device: Annotated[
        str, typer.Option(help="Where the matrix is held, as PyTorch names it: cuda.")
    ] = "",
    report_only: Annotated[
        bool,
        typer.Option(
            "--report-only",
            help="Make no records: report those in --out, whichever code made them.",
        ),
    ] = False,
) -> None:
    """Run experiments of the paper: figures, statistics, a ledger of its claims, a report.

    A run that was stopped goes on where it was when the same command is given again.
    """
    from nysboost.experiments import reproduce_command

    request = reproduce_command.Request(
        presets=tuple(presets),
        replicates=tuple(replicates or ()),
        max_learners=max_learners,
        variants=variants,
        reading=reading,
        seed=seed,
        quick=quick,
        data_dir=data_dir,
        device=device,
        report_only=report_only,
    )
    try:
        reproduce_command.run(request, out, jobs)
    except KeyboardInterrupt:
        console.say(f"Stopped. What was made is kept in {out}: the same command goes on there.")
        raise typer.Exit(130) from None


@app.command()
def compare(
    data: Annotated[str, typer.Argument(help="A CSV, Parquet, .npy, .npz or LIBSVM file.")],
    kernel: Annotated[str, typer.Option(help="Name of a kernel; see nysboost list.")] = "gaussian",
    sigma: Annotated[
        str | None, typer.Option(help="Width of the kernel: a number, median or scale.")
    ] = None,
    columns: Annotated[
        int | None, typer.Option(min=1, help="Budget: columns of the kernel matrix to use.")
    ] = None,
    methods: Annotated[str, typer.Option(help="Names separated by commas, or all.")] = "",
    learners: Annotated[int, typer.Option(min=1, help="Learners of each mixture.")] = 8,
    rank: Annotated[int | None, typer.Option(min=1, help="Rank of each learner.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Column to leave out: name or number. May be given more than once."),
    ] = None,
    standardise: Annotated[
        bool, typer.Option(help="Scale each column to mean 0 and deviation 1.")
    ] = False,
    max_rows: Annotated[int, typer.Option(min=2, help="Most rows; more are subsampled.")] = 4000,
    repeats: Annotated[int, typer.Option(min=1, help="Seeds for each method.")] = 3,
    seed: Seed = 0,
    out: Out = Path("comparison"),
    data_dir: DataDir = None,
) -> None:
    """Compare methods on your own data and recommend one."""
    from nysboost.experiments import compare_command

    request = compare_command.Request(
        data=data,
        kernel=kernel,
        sigma=sigma,
        columns=columns,
        methods=tuple(m.strip() for m in methods.split(",") if m.strip()),
        n_learners=learners,
        rank=rank,
        label=tuple(label or ()),
        standardise=standardise,
        max_rows=max_rows,
        repeats=repeats,
        seed=seed,
    )
    try:
        compare_command.run(request, out, data_dir)
    except KeyboardInterrupt:
        console.say(f"Stopped. What was compared until then, if anything, is in {out}.")
        raise typer.Exit(130) from None


@app.command("list")
def list_everything(
    what: Annotated[
        Literal["all", "methods", "kernels", "presets", "data"],
        typer.Argument(help="What to show; “data” is the paper's table of data sets."),
    ] = "all",
    data_dir: DataDir = None,
) -> None:
    """Show methods, kernels, presets and data sets, and where each data set was found."""
    import nysboost as nb
    from nysboost.experiments import presets
    from nysboost.kernels import KERNELS

    if data_dir is not None and not data_dir.is_dir():
        raise UserError(f"The data folder {data_dir} does not exist.")
    if what in ("all", "methods"):
        console.words("Methods", nb.METHODS)
    if what in ("all", "kernels"):
        console.words("Kernels", KERNELS)
    if what in ("all", "presets"):
        loaded = [presets.load(name) for name in presets.names()]
        rows = [[p.name, p.title, "; ".join(f.label for f in p.figures)] for p in loaded]
        console.table("Presets", ["name", "experiment", "figures of the paper"], rows)
    if what in ("all", "data"):
        found = datasets.table(data_dir)
        console.table("Data sets", list(found[0]), [list(row.values()) for row in found])

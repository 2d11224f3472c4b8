"""All commands of ``nysboost``: those on your files here, those of the paper in experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nysboost._version import SOFTWARE
from nysboost.cli import options
from nysboost.cli.errors import StoppedError, sentences
from nysboost.experiments import console
from nysboost.experiments.commands import app

MAX_MEMORY = "1GiB"


@app.command()
def fit(
    data: options.Data,
    out: options.Out,
    target: Annotated[
        str | None,
        typer.Option(help="The column to predict: name or number. Without: an approximation."),
    ] = None,
    task: Annotated[
        Literal["auto", "regression", "classification"],
        typer.Option(help="auto: text is classified, numbers are regressed."),
    ] = "auto",
    components: Annotated[int, typer.Option(min=1, help="Number of landmarks.")] = 100,
    method: Annotated[str, typer.Option(help="How landmarks are found; nysboost list.")] = "joint",
    kernel: Annotated[str, typer.Option(help="Name of a kernel; nysboost list.")] = "rbf",
    sigma: Annotated[str, typer.Option(help="Its width: a number, median or scale.")] = "median",
    tol: Annotated[
        float | None, typer.Option(help="Error to reach, with as many landmarks as that takes.")
    ] = None,
    dataset: options.Dataset = None,
    drop_column: Annotated[
        list[str] | None, typer.Option(help="Leave out a column. May be given more than once.")
    ] = None,
    drop_missing: options.DropMissing = False,
    max_memory: options.MaxMemory = MAX_MEMORY,
    scheduler: options.Scheduler = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit a model to a table and save it: a learner with --target, else an approximation."""
    with sentences(as_json=as_json):
        from nysboost.cli import fit as command

        request = command.Request(
            data=data,
            out=out,
            target=target,
            task=task,
            components=components,
            method=method,
            kernel=kernel,
            sigma=sigma,
            tol=tol,
            dataset=dataset,
            drop_column=tuple(drop_column or ()),
            drop_missing=drop_missing,
            max_memory=max_memory,
            scheduler=scheduler,
            seed=seed,
            force=force,
            quiet=as_json,
        )
        _tell(command.run(request), as_json)


@app.command()
def learn(
    data: Annotated[str, typer.Argument(help="A .csv, .tsv or .parquet file with column names.")],
    target: Annotated[str, typer.Option(help="The column to predict, by name.")],
    task: Annotated[
        Literal["auto", "regression", "classification"],
        typer.Option(help="auto: text is classified, numbers are regressed."),
    ] = "auto",
    components: Annotated[int, typer.Option(min=2, help="Number of landmarks.")] = 256,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    max_rows: Annotated[int, typer.Option(min=20, help="Rows at most, drawn at random.")] = 20_000,
    seed: options.Seed = 0,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("learned"),
) -> None:
    """Compare learners on your table by cross-validation, and write a report."""
    with sentences(as_json=False):
        from nysboost.experiments import learn_command

        request = learn_command.Request(data, target, task, components, folds, max_rows, seed)
        try:
            learn_command.run(request, out)
        except KeyboardInterrupt:
            said = f"Stopped. What was measured until then, if anything, is in {out}."
            raise StoppedError(said) from None


@app.command()
def transform(
    model: options.Model,
    data: options.Data,
    out: options.Out,
    dataset: options.Dataset = None,
    drop_missing: options.DropMissing = False,
    max_memory: options.MaxMemory = MAX_MEMORY,
    scheduler: options.Scheduler = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write the features of every row of a table."""
    with sentences(as_json=as_json):
        from nysboost.cli import apply
        from nysboost.cli.models import transformer

        request = apply.Request(
            model, data, out, dataset, drop_missing, max_memory, scheduler, force, as_json
        )
        _tell(apply.run(request, "feature", transformer), as_json)


@app.command()
def predict(
    model: options.Model,
    data: options.Data,
    out: options.Out,
    dataset: options.Dataset = None,
    drop_missing: options.DropMissing = False,
    max_memory: options.MaxMemory = MAX_MEMORY,
    scheduler: options.Scheduler = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write the prediction for every row of a table."""
    with sentences(as_json=as_json):
        from nysboost.cli import apply
        from nysboost.cli.models import predictor

        request = apply.Request(
            model, data, out, dataset, drop_missing, max_memory, scheduler, force, as_json
        )
        _tell(apply.run(request, "prediction", predictor), as_json)


@app.command()
def info(model: options.Model, as_json: options.Json = False) -> None:
    """Say what is in a model file."""
    with sentences(as_json=as_json):
        from nysboost.cli import info as command

        _tell(command.run(Path(model)), as_json)


def _tell(said: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(said | {"software": SOFTWARE}))
        return
    for name, value in said.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        console.say(f"{name.replace('_', ' ')}: {text}")


__all__ = ["app"]

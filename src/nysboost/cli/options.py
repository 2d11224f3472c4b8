"""Options that several commands share, each said in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path, typer.Argument(help="CSV, Parquet (file or folder), .npy, .npz, HDF5 or Zarr.")
]
Model = Annotated[Path, typer.Argument(help="A model that nysboost fit or nb.save wrote.")]
Out = Annotated[Path, typer.Option(help="The file to write; it appears when it is whole.")]
Dataset = Annotated[
    str | None, typer.Option(help="Which array of an .npz, HDF5 or Zarr file; default X.")
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
]
MaxMemory = Annotated[
    str, typer.Option(help="Working memory, such as 500MB or 2GiB, beside a block of rows.")
]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://10.0.0.1:8786.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it is there.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]

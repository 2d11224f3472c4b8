"""NysBoost in TabArena's model form, and a run on your own tables through TabArena's code.

In an environment with `pip install tabarena nysboost`, from this folder:

    python nysboost_model.py DATA/tables mpg titanic    # tables.json names their targets
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
from autogluon.core.constants import REGRESSION
from autogluon.core.models import AbstractModel
from autogluon.core.utils.exceptions import TimeLimitExceeded
from sklearn.model_selection import KFold, StratifiedKFold

logger = logging.getLogger(__name__)

TIME_FOR_SEARCH = 0.8
"""Share of the time limit for the search, after which the best model is finished."""


class NysBoostModel(AbstractModel):
    """`NystroemRegressor` or `NystroemClassifier`, on the table as AutoGluon hands it over.

    Missing values and categories reach the learner as they are. Rows of X_val choose and calibrate
    the model, which is fitted to X alone. Without them it holds out rows of X itself.
    """

    ag_key = "NYSBOOST"
    ag_name = "NysBoost"
    seed_name = "random_state"
    default_resources_physical_cores_only = True
    default_num_gpus = 0
    _supported_problem_types = ("binary", "multiclass", "regression")
    _default_auxiliary_params_extra = {  # noqa: RUF012 - AutoGluon's form
        "valid_raw_types": ["int", "float", "category", "bool"]
    }

    def _fit(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        X_val: pd.DataFrame | None = None,
        y_val: pd.Series | None = None,
        time_limit: float | None = None,
        num_cpus: int = 1,
        num_gpus: float = 0,
        **_: Any,
    ) -> None:
        begun = time.time()
        import nysboost as nb

        if num_gpus > 0:
            logger.log(20, "\tNysBoost computes tables with categories on processors: no GPU used.")
        made: Any = nb.NystroemClassifier
        if self.problem_type == REGRESSION:
            made = nb.NystroemRegressor

        X = self.preprocess(X, is_train=True)
        validation = None
        if X_val is not None:
            validation = (self.preprocess(X_val), y_val)
        params = self._get_model_params()
        if time_limit is not None:
            left = TIME_FOR_SEARCH * (time_limit - (time.time() - begun))
            if left <= 0:
                raise TimeLimitExceeded
            params["max_time"] = left
        model = made(n_jobs=num_cpus, verbose=0, **params)
        self.model = model.fit(X, y, validation=validation)

    @classmethod
    def _estimate_memory_usage_static(cls, *, X: pd.DataFrame, **_: Any) -> int:
        """Return bytes: passes over the rows hold `max_memory`, and a model the mapped rows."""
        working = 2 * 10**9
        as_numbers = 8 * X.shape[0] * (X.shape[1] + 128)
        return working + 3 * as_numbers


def generator() -> Any:
    """Return TabArena's generator of configurations: the default one, and nothing to search."""
    from tabarena.utils.config_utils import ConfigGenerator

    return ConfigGenerator(search_space={}, model_cls=NysBoostModel, manual_configs=[{}])


def run(folder: Path, name: str, time_limit: float) -> dict[str, Any]:
    """Return TabArena's result on the first of three folds of a table."""
    from tabarena.benchmark.experiment import AGModelBagExperiment
    from tabarena.benchmark.task import UserTask

    # the table as TabArena's task
    about = json.loads((folder / "tables.json").read_text())[name]
    table = pd.read_csv(folder / f"{name}.csv.gz", na_values=["?"])
    table = table.dropna(subset=[about["target"]]).reset_index(drop=True)
    texts = table.select_dtypes(exclude="number").columns
    table[texts] = table[texts].astype("category")
    y = table[about["target"]]
    kind = KFold if about["task"] == "regression" else StratifiedKFold
    folds = kind(3, shuffle=True, random_state=0).split(table, y)
    splits = {0: {i: (a.tolist(), b.tolist()) for i, (a, b) in enumerate(folds)}}
    task = UserTask(task_name=name)
    data = task.create_task(
        target_feature=about["target"],
        problem_type=about["task"],
        dataset=table,
        splits=splits,
    )

    # eight bags, as TabArena fits them
    experiment = AGModelBagExperiment(
        name="NysBoost_c1_BAG_L1",
        model_cls=NysBoostModel,
        model_hyperparameters={"ag_args_ensemble": {"fold_fitting_strategy": "sequential_local"}},
        num_bag_folds=8,
        time_limit=time_limit,
    )
    found: dict[str, Any] = experiment.run(
        task=data, fold=0, task_name=name, cache_task_key=task.cache_key
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--time-limit", type=float, default=3600)
    given = parser.parse_args()
    for experiment in generator().generate_all_bag_experiments(num_random_configs=0):
        print(experiment.name)
    folder = given.folder.resolve()
    with tempfile.TemporaryDirectory() as models, contextlib.chdir(models):
        for name in given.tables:
            found = run(folder, name, given.time_limit)
            shown = {key: found[key] for key in ("metric", "metric_error", "time_train_s")}
            print(name, shown, flush=True)


if __name__ == "__main__":
    main()

"""Many rows with calendar columns, hours and categories: error and time against LightGBM.

A year of departures is simulated. Each of three airports has weather, which changes from hour to
hour, and delays that it begins add up along the day; airlines and destinations have good and bad
days. Rows of the same day, hour and airport share most of what can be predicted, and the rest is
noise with heavy tails. The "calendar" table has what a timetable says, with categories of 3, 16 and
105 values; "informed" adds noisy observations of the weather, and the delay of the departure.

LightGBM has a learning rate of 0.05 and stops early on a tenth of the training rows. Standard
deviation and error of the noise alone, which no learner sees, say what there is to learn. Every
figure is of --rows training rows and a quarter as many test rows; time is the processor's.

    python benchmarks/large_table.py --cores 2
    python benchmarks/large_table.py --rows 65536 --only informed
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import Row, benchmark, compare, progress
from threadpoolctl import threadpool_limits

import nysboost as nb

DAYS, HOURS, AIRPORTS, AIRLINES, PLACES = 365, 24, 3, 16, 105
FIRST_HOUR, LAST_HOUR = 5, 23
MOST_TREES = 3000
GOALS = {"error": 1.0, "time": 2.0}


class Simulated(NamedTuple):
    """A table of departures, the minutes of delay, and what is known without the noise."""

    frame: pd.DataFrame
    delay: np.ndarray
    expected: np.ndarray


class Year(NamedTuple):
    """Weather and accumulated delay at each day, hour and airport, shape (365, 24, 3)."""

    weather: np.ndarray
    queue: np.ndarray


def simulate(n: int, seed: int, informed: bool) -> Simulated:
    """Return n departures of a year."""
    rng = np.random.default_rng(seed)
    year = _year(rng)
    airlines = _airlines(rng)

    # the timetable: flights at fixed hours, which fly on most days
    flights = _timetable(rng, airlines, 4000)
    flight = flights.iloc[rng.integers(len(flights), size=n)].reset_index(drop=True)
    day = rng.integers(DAYS, size=n)
    at = day, flight["hour"].to_numpy(), flight["origin"].to_numpy()

    # what can be predicted: the queue at the airport, airlines and destinations and their days
    carrier = flight["carrier"].to_numpy()
    place = flight["place"].to_numpy()
    of_airline = 4 * rng.standard_normal(AIRLINES)
    of_place = 2 * rng.standard_normal(PLACES)
    day_of_airline = 5 * rng.standard_normal((DAYS, AIRLINES))
    day_of_place = 5 * rng.standard_normal((DAYS, PLACES))
    fixed = of_airline[carrier] + of_place[place]
    daily = day_of_airline[day, carrier] + day_of_place[day, place]
    expected = year.queue[at] + fixed + daily

    # on the way: taxiways that are full when the weather is bad, and winds towards a place
    weather = year.weather[at]
    taxiways = 5 * rng.standard_normal((DAYS, AIRPORTS))
    winds = _winds(rng)
    on_the_way = 0.3 * weather + taxiways[day, at[2]] + winds[day, place]

    # noise: most departures are early by some minutes, and a few are late by hours
    quiet = 8 * rng.standard_normal(n)
    late = rng.random(n) < 0.15
    long_wait = late * rng.lognormal(3.6, 0.9, size=n)
    departure = expected + quiet + long_wait
    delay = departure + on_the_way + 6 * rng.standard_t(5, size=n)

    frame = _columns(flight, day)
    known = expected + on_the_way + np.mean(long_wait)
    if informed:
        frame["wind"] = np.round(10 + weather / 4 + 3 * rng.standard_normal(n))
        frame["rain"] = np.round(np.maximum(0, weather - 20 + 5 * rng.standard_normal(n)), 1)
        frame["departure_delay"] = np.round(departure)
        known = departure + on_the_way
    return Simulated(frame, delay, known)


def _year(rng: np.random.Generator) -> Year:
    """Return the weather of a year, and the delays that it and busy hours leave behind."""
    shape = DAYS, HOURS, AIRPORTS
    front = 0.8 * rng.standard_normal((DAYS, 1, 1))
    local = 0.7 * rng.standard_normal((DAYS, 1, AIRPORTS))
    weather = np.empty(shape)
    queue = np.zeros(shape)

    # busy hours, and seasons in which the airports are full
    hours = np.arange(HOURS)
    busy = np.exp(-0.5 * ((hours - 8) / 2) ** 2) + np.exp(-0.5 * ((hours - 18) / 2.5) ** 2)
    season = 1 + 0.3 * np.cos(2 * np.pi * (np.arange(DAYS) - 190) / DAYS)

    # an autoregression from hour to hour, and a queue that empties slowly
    changing = 0.8 * rng.standard_normal((DAYS, AIRPORTS))
    for h in range(HOURS):
        changing = 0.8 * changing + 0.5 * rng.standard_normal((DAYS, AIRPORTS))
        weather[:, h] = 6 * np.exp(front[:, 0] + local[:, 0] + changing)
        before = queue[:, h - 1] if h > 0 else 0.0
        new = 0.25 * weather[:, h] + 2 * (busy[h] * season - 1)[:, None]
        queue[:, h] = np.clip(0.8 * before + new, 0.0, 150.0)
    return Year(weather, queue)


def _winds(rng: np.random.Generator) -> np.ndarray:
    """Return the minutes that the winds of each day cost on the way to each place, (365, 105)."""
    strength = np.zeros(DAYS)
    for day in range(1, DAYS):
        strength[day] = 0.7 * strength[day - 1] + 7 * rng.standard_normal()
    direction = rng.uniform(-1.0, 1.0, size=PLACES)
    return np.outer(strength, direction)


def _airlines(rng: np.random.Generator) -> np.ndarray:
    """Return the shares of airlines at each airport, shape (3, 16)."""
    return rng.dirichlet(0.4 * np.ones(AIRLINES), size=AIRPORTS)


def _timetable(rng: np.random.Generator, airlines: np.ndarray, size: int) -> pd.DataFrame:
    """Return flights: airport, airline, destination, distance, hour and minute of departure."""
    origin = rng.integers(AIRPORTS, size=size)
    carrier = np.array([rng.choice(AIRLINES, p=airlines[one]) for one in origin])
    frequent = rng.dirichlet(0.5 * np.ones(PLACES))
    place = rng.choice(PLACES, size=size, p=frequent)
    distance = np.round(rng.lognormal(6.7, 0.6, size=PLACES))[place] + 15 * origin
    hour = rng.integers(FIRST_HOUR, LAST_HOUR + 1, size=size)
    minute = rng.integers(12, size=size) * 5
    columns = {"origin": origin, "carrier": carrier, "place": place, "distance": distance}
    return pd.DataFrame(columns | {"hour": hour, "minute": minute, "number": 1 + np.arange(size)})


def _columns(flight: pd.DataFrame, day: np.ndarray) -> pd.DataFrame:
    """Return the columns of a timetable, as a file would have them."""
    date = pd.Timestamp("2013-01-01") + pd.to_timedelta(day, unit="D")
    minutes = 60 * flight["hour"] + flight["minute"]
    arrival = (minutes + 30 + flight["distance"] / 8).round() % (24 * 60)
    return pd.DataFrame({
        "month": date.month,
        "day": date.day,
        "hour": flight["hour"],
        "minute": flight["minute"],
        "departure": minutes,
        "arrival": arrival,
        "number": flight["number"],
        "distance": flight["distance"],
        "origin": _names("airport", flight["origin"], AIRPORTS),
        "carrier": _names("airline", flight["carrier"], AIRLINES),
        "destination": _names("place", flight["place"], PLACES),
    })  # fmt: skip


def _names(word: str, codes: pd.Series, count: int) -> pd.Categorical:
    """Return a category with names such as airport2."""
    return pd.Categorical.from_codes(codes, [f"{word}{i}" for i in range(count)])


class Fitted(NamedTuple):
    """Predictions for the test rows, and the seconds of the fit."""

    mean: np.ndarray
    seconds: float


def fit_ours(train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame, cores: int) -> Fitted:
    """Fit the learner with its default settings."""
    model = nb.NystroemRegressor(random_state=0, verbose=0)
    with threadpool_limits(cores):
        seconds = _processor_seconds(lambda: model.fit(train, y))
    return Fitted(np.asarray(model.predict(test)), seconds)


def fit_trees(train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame, cores: int) -> Fitted:
    """Fit LightGBM, which stops early on a tenth of the rows."""
    import lightgbm

    order = np.random.default_rng(0).permutation(len(y))
    held, rest = np.split(order, [len(y) // 10])
    model = lightgbm.LGBMRegressor(
        n_estimators=MOST_TREES,
        learning_rate=0.05,
        early_stopping_round=100,
        n_jobs=cores,
        verbose=-1,
    )
    evaluate = [(train.iloc[held], y[held])]
    seconds = _processor_seconds(lambda: model.fit(train.iloc[rest], y[rest], eval_set=evaluate))
    progress(f"LightGBM: {model.best_iteration_} trees")
    return Fitted(np.asarray(model.predict(test)), seconds)


def _processor_seconds(fit: Callable[[], Any]) -> float:
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit()
    return time.process_time() - begun


def calendar(options: argparse.Namespace) -> Iterator[Row]:
    """Measure what a timetable says."""
    yield from _measure("calendar", options)


def informed(options: argparse.Namespace) -> Iterator[Row]:
    """Measure with weather and the delay of departure."""
    yield from _measure("informed", options)


def _measure(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of one table: what can be learned, error and time."""
    n_test = options.rows // 4
    frame, delay, expected = simulate(options.rows + n_test, options.seed, name == "informed")
    train, test = frame[n_test:].reset_index(drop=True), frame[:n_test]
    y, truth = delay[n_test:], delay[:n_test]
    trees = fit_trees(train, y, test, options.cores)
    error_of_trees = _rmse(trees.mean, truth)

    # what there is to learn
    spread = float(np.std(truth))
    noise = _rmse(expected[:n_test], truth)
    yield compare(f"{name}, LightGBM", "standard deviation", [error_of_trees], spread, unit="min")
    yield compare(f"{name}, LightGBM", "noise", [error_of_trees], noise, unit="min")

    # ours
    ours = fit_ours(train, y, test, options.cores)
    error = _rmse(ours.mean, truth)
    yield compare(f"{name}, error", "LightGBM", [error], error_of_trees, GOALS["error"], unit="min")
    yield compare(f"{name}, time", "LightGBM", [ours.seconds], trees.seconds, GOALS["time"])


def _rmse(mean: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((mean - truth) ** 2)))


main = benchmark(
    __file__,
    __doc__,
    "Many rows with calendar columns and categories",
    [calendar, informed],
    rounds=1,
    options={"rows": (262_144, "training rows"), "cores": 1, "seed": 0},
)

if __name__ == "__main__":
    main()

"""The race of candidates on samples of many rows."""

from dataclasses import replace

import numpy as np
import pytest
from racing import run, shrink, table

from nysboost.data.recognise import rows_of
from nysboost.engine.moments import Moments
from nysboost.target import race
from nysboost.target.candidates import MATERN12, MATERN32, Candidate, Found
from nysboost.target.linear import LinearModel, chosen, errors_along
from nysboost.target.scale import each_alone


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    shrink(monkeypatch)


def test_the_samples_do_not_grow_with_the_rows_but_all_rows_give_weights(monkeypatch):
    seen = []
    plain = race.moved
    monkeypatch.setattr(race, "moved", lambda f, s, *rest: seen.append(s.n) or plain(f, s, *rest))
    for n in (1000, 5000):
        judged = run(*table(n))
        assert float(judged.models[0].moments.weight) == n
        assert len(judged.truth) == 80
    assert set(seen) == {100}


def test_the_judge_takes_no_part(monkeypatch):
    X, Y = table(1000)
    rows = {}
    plain_of = race.Race.of
    monkeypatch.setattr(race.Race, "of", lambda *a: rows.setdefault("race", plain_of(*a)))
    run(X, Y)
    drawn = rows["race"]
    held = {tuple(row) for row in np.round(drawn.judge.X, 12)}
    for sample in (drawn.first, drawn.fit, drawn.sample):
        assert not held & {tuple(row) for row in np.round(sample.X, 12)}


def test_steps_that_make_things_worse_are_taken_back(monkeypatch):
    X, Y = table(1000)
    good = run(X, Y)
    plain = race.settled

    def spoilt(*given):
        after = plain(*given)
        point = type(after.point)(after.point.Z * 0 + 100, after.point.A, after.point.log_gamma)
        return type(after)(after.name, after.kernel, point, after.gammas)

    monkeypatch.setattr(race, "settled", spoilt)
    judged = run(X, Y)
    miss = [np.sqrt(np.mean((j.mean - j.truth) ** 2)) for j in (good, judged)]
    assert miss[1] < 2 * miss[0]


def test_candidates_of_one_metric_share_their_start(monkeypatch):
    starts, plain = [], Candidate.start
    monkeypatch.setattr(Candidate, "start", lambda *a: starts.append(a[0]) or plain(*a))
    monkeypatch.setattr(race, "LATER_STEPS", 1)
    shared = (Candidate(MATERN12, "full"), Candidate(MATERN32, "full"), Candidate(MATERN32, "each"))
    judged = run(*table(500), candidates=shared)
    assert [s.shape for s in starts] == ["full", "each"]
    assert len(judged.notes) == 5  # the simplest model, three candidates, the best settled


def test_the_judge_joins_once_it_has_judged(monkeypatch):
    seen, plain = [], race.settled
    monkeypatch.setattr(race, "LATER_STEPS", 10)
    monkeypatch.setattr(race, "settled", lambda f, s, *a: seen.append((f, s, a)) or plain(f, s, *a))
    X, Y = table(500)
    judged = run(X, Y)
    (_, alone, (_, _, steps, *_)), (after, every, (_, _, more, _, pace)) = seen
    assert (alone.n, every.n) == (420, 500)
    assert (steps, more, pace) == (10, 2, race.JOINED)
    last = plain(after, every, *seen[1][2])  # where the last steps end
    scale = race.taken(rows_of(X), Y, None, np.arange(500), each_alone)[1]
    model = judged.models[-1]
    np.testing.assert_allclose(model.basis.Z, scale.undone(last).Z)
    # γ is as far from the loss's own as the judge said before, whose predictions are kept
    held = LinearModel.fit(after.basis(), Moments.of(after.basis()(alone.X), alone.Y), 1.0)
    errors = errors_along(
        held.moments, after.basis()(every.X[:80]), every.Y[:80], None, after.gammas
    )
    at = chosen(after.gammas, errors)
    assert model.gamma == pytest.approx(last.gammas[at])
    features = Moments.of(last.basis()(every.X), every.Y)
    np.testing.assert_allclose(model.w, LinearModel.fit(last.basis(), features, model.gamma).w)
    expected = LinearModel.fit(after.basis(), held.moments, after.gammas[at])
    np.testing.assert_allclose(judged.mean, expected.predict(after.basis()(every.X[:80])))


def test_a_judge_of_few_among_many_does_not_join(monkeypatch):
    seen, plain = [], race.settled
    monkeypatch.setattr(race, "LATER_STEPS", 10)
    monkeypatch.setattr(race, "WORSE", np.inf)
    monkeypatch.setattr(race, "settled", lambda f, s, *a: seen.append(s.n) or plain(f, s, *a))
    for n in (1600, 1601):  # 80 of them judge
        run(*table(n))
    assert seen == [1520, 1600, 1521]


def test_steps_with_the_judge_that_leave_a_valley_are_taken_back(monkeypatch):
    plain = race.settled

    def spoilt(found, sample, *rest):
        after = plain(found, sample, *rest)
        if sample.n < 500:
            return after
        return replace(after, point=replace(after.point, Z=after.point.Z * 0 + 100))

    monkeypatch.setattr(race, "LATER_STEPS", 10)
    good = run(*table(500))
    monkeypatch.setattr(race, "settled", spoilt)
    kept = run(*table(500))
    monkeypatch.setattr(race, "JOIN", 1.0)
    alone = run(*table(500))
    Z = [judged.models[-1].basis.Z for judged in (good, kept, alone)]
    assert not np.array_equal(Z[0], Z[1])
    np.testing.assert_array_equal(Z[1], Z[2])


@pytest.mark.parametrize(
    ("n", "judging"), [(100, 20), (4000, 800), (8000, 1024), (20000, 2000), (50000, 4096)]
)
def test_a_tenth_of_the_rows_judges_within_bounds(monkeypatch, n, judging):
    monkeypatch.setattr(race, "JUDGE_ROWS", 4096)
    X = np.random.default_rng(0).normal(size=(n, 1))
    drawn = race.Race.of(rows_of(X), X, None, 5, np.random.default_rng(0), each_alone)
    assert (drawn.judge.n, drawn.sample.n) == (judging, n - judging)


def test_the_best_goes_on_or_all_where_rows_are_few_for_each_landmark():
    X = np.random.default_rng(0).normal(size=(200, 1))
    errors = [0.9, 0.3, 0.61, 0.59]
    heats = [Found(str(error), MATERN32, None, np.ones(1), error) for error in errors]
    for c, going_on in ((12, [0.3]), (13, sorted(errors))):
        drawn = race.Race.of(rows_of(X), X, None, c, np.random.default_rng(0), each_alone)
        assert [found.error for found in drawn.leaders(heats)] == going_on


def test_nobody_joins_steps_that_are_taken_back(monkeypatch):
    seen, plain = [], race.settled
    monkeypatch.setattr(race, "WORSE", 0.0)
    monkeypatch.setattr(race, "LATER_STEPS", 1)
    monkeypatch.setattr(race, "settled", lambda f, s, *a: seen.append(s.n) or plain(f, s, *a))
    run(*table(500))
    assert seen == [420]


def test_a_batch_and_the_sample_stay_within_their_sizes(monkeypatch):
    seen, plain = [], race.settled
    monkeypatch.setattr(race, "SAMPLE_ROWS", 300)
    monkeypatch.setattr(race, "LATER_STEPS", 2)
    monkeypatch.setattr(
        race, "settled", lambda f, s, *a: seen.append((s.n, a[1])) or plain(f, s, *a)
    )
    run(*table(1000))
    run(*table(3000))
    assert seen == [(300, 100), (300, 100)]


def test_the_trace_is_a_landmark_for_each_row_of_the_sample(monkeypatch):
    seen, plain = set(), race.settled
    monkeypatch.setattr(race, "SAMPLE_ROWS", 400)
    monkeypatch.setattr(race, "LATER_STEPS", 1)
    monkeypatch.setattr(race, "settled", lambda f, s, *a: seen.add(a[0]) or plain(f, s, *a))
    run(*table(1000))
    assert seen == {10 / 400}


def test_landmarks_apart_from_the_metric_begin_again(monkeypatch):
    rng, seen, plain = np.random.default_rng(0), [], race.settled
    X = rng.normal(size=(400, 100))
    Y = np.sin(X[:, :1])
    monkeypatch.setattr(race, "FIRST_STEPS", 2)
    monkeypatch.setattr(race, "LATER_STEPS", 1)
    monkeypatch.setattr(race, "settled", lambda f, *a: seen.append(f) or plain(f, *a))
    run(X, Y, candidates=(Candidate(MATERN32, "full"),))
    run(X, Y, candidates=(Candidate(MATERN32, "each"),))
    assert [(found.apart, found.point is found.begun) for found in seen] == [
        (True, True),
        (False, False),
    ]

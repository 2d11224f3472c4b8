"""Landmarks and a metric that know the target: loss, search, candidates, judges, weights."""

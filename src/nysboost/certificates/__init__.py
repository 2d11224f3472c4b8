"""Intervals for the error of an approximation, and as many landmarks as an error needs."""

"""The paper's experiments: presets, data sets, claims, replicates, runs, ledger and pages."""

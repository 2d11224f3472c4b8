"""The paper's experiments and comparisons on the user's data: protocols, runs, reports."""

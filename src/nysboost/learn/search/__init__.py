"""Learning from a target: landmarks find kernel and metric, and leaves predict from all rows."""

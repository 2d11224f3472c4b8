"""Learning from a target: kernel and metric by landmarks, predictions by all rows in leaves."""

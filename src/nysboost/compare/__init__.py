"""Compare methods and learners on the user's own data, and write reports."""

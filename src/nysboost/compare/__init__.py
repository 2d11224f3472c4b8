"""Methods and learners side by side on the user's own data, and the reports of it."""

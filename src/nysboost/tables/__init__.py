"""Tables as users have them: kinds of columns, files, and codes as numbers."""

"""Programs for other frameworks, each run by the Python of its own venv; they import nothing but torch."""

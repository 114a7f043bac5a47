"""`fedgm dashboard`: stored runs as one self-contained page."""

"""Parts of somebody else's: each is one file here and one yaml in ``my_conf``, and fedgm knows of none."""

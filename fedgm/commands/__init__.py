"""The commands of ``fedgm``: a module each, named as the command; its docstring is the line in --help."""

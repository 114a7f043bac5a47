"""A federated run of fedgm on Flower."""

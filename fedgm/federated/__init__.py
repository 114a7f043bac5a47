"""The federated loop on Lightning: rounds, cohorts, the mean, the FedGM callback, worker processes."""

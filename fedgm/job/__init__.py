"""One job, from a composed configuration to the result in its run folder."""

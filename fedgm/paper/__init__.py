"""The paper's figures from its experiments: what to run, what to draw, which claims hold."""

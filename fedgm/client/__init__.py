"""A client's model, its local training (Alg. 2), and the flat view of its weights."""

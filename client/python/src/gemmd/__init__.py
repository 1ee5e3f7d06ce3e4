"""Matrix products on a gemmd server, for numpy arrays and torch tensors."""

"""The cost of one pass of a model on the chips of a replica: seconds and bytes by part, bounds, what binds."""

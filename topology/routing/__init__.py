"""Routes on a slice with dead links: loads of all-to-all, best routes, deadlock, what is kept."""

"""What is asked of a machine: availability, delivered slices, promises, services; tasks in, rows of tables out."""

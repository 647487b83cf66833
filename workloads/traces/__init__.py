"""Published request traces: files that users have, by path. Nothing here is shipped with the project."""

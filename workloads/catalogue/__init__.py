"""Catalogues: chips, models, and how well software uses chips. Every number bears its source and mark."""

"""Token-by-token serving: the compiled kernel, its batching and routing policies, its measures."""

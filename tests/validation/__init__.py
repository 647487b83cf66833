"""`make validation`: every published number beside ours, as the page docs/validation.md."""

"""The pages of `docs/`: what they show runs and says what they say it says."""

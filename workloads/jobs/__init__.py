"""Jobs: what is asked of the pod, when, for how long; drawn from laws or read from logs. No clock."""

"""SimPy processes: failures, health, repair, jobs, dispatch, serving."""

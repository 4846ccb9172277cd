"""The living jobs: one loop per job, their supervisor, the worker processes; state belongs to the store."""

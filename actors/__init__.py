"""The living jobs: one loop per job, their supervisor, and the worker processes; state belongs to the store."""

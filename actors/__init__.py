"""The living jobs: loop, supervisor, worker processes; nothing acts before its commit returned."""

"""The law of one job: pure computation over records; no clock, no disk, no network, no randomness."""

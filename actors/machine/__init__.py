"""The law of one job, pure: no clock, no disk, no network, no randomness."""

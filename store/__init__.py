"""The disk: logs, checkpoints, intake, quarantine; synchronous, and it decides nothing."""

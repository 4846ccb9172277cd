"""The words: records, codec, wire, migrations and errors; no clock, no disk, no network, no process."""

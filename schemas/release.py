"""Which release this is, as records and people name it."""

VERSION = "0.1.0"

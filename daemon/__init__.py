"""The outside: socket, incoming folder, service manager, command line."""

"""Drills on the real daemon: processes, kills, files and sockets as an operator would meet them."""

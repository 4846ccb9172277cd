"""The fault kit: kills, errnos, short writes and power cuts on the durable seam, and a small world to hit."""

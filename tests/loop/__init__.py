"""The loop's kit: virtual time, workers that misbehave, daemons that die, and the laws that hold then."""

"""`import resumed`: what authors and client programs import; lazy, nothing else."""

"""What authors write with, and the process that runs their code; it imports the words only."""

"""Worker processes on this machine, and tasks on a Ray cluster."""

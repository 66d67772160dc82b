"""What a release promises, how noise is calibrated to it, and what has been spent."""

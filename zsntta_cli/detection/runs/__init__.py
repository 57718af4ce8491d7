"""What `zsntta detect` is asked for, and how its images become rows."""

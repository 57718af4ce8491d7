"""The request of `zsntta detect`, and how its images become rows."""

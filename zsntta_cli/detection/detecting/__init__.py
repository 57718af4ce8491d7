"""The work of `zsntta detect`: a request becomes rows, and corrections teach the next run."""

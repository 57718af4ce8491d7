"""Results that are kept: a record of each finished run, its curves, and what each item got."""

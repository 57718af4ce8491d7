"""Records to what people read."""

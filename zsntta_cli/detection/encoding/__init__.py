"""Images and class names to features, each encoded once."""

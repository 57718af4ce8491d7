"""Feature files: their content, their encoders and their folders."""

"""What the paper prints: its tables, their numbers and names, and what of it cannot be right."""

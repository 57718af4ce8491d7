"""What a user's classes are made of: names, or example photos."""

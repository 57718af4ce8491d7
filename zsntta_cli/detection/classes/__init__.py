"""What a user's classes are made of: names, example photos, and words for what is none of them."""

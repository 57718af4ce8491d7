"""CLIP encoders, which turn images and prompts into features."""

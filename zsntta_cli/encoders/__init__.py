"""CLIP encoders: images and prompts to features."""

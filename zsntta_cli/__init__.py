"""zsntta: zero-shot noisy test-time adaptation of vision-language models."""

__version__ = "0.1.0"

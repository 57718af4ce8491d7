"""Feature files that are published and fetched: places, their index and card, push and pull."""

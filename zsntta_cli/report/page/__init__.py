"""The report: results that are kept, as one HTML page that needs nothing beside it."""

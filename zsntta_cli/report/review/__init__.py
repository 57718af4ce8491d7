"""The review: a page that shows what was decided, and what corrections made on it say."""

EMBEDDED = 600  # pictures of a page, unless one says otherwise

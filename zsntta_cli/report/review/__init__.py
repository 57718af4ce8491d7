"""The review: a page that shows the decisions, and what corrections of them say."""

EMBEDDED = 600  # pictures of a page, unless one says otherwise

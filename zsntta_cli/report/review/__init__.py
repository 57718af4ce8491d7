"""The review: a page that shows the decisions, and corrections of them."""

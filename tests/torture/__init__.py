"""Whatever a user types or a stranger sends: grammars of it, and what must hold of every answer."""

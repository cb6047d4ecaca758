"""A plan as text, JSON or HTML; nothing is decided or computed here."""

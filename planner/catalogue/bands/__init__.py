"""How far times by a profile may be off."""

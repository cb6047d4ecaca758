"""Which size and tokens are best? Posynomials, Newton's steps, and their proof."""

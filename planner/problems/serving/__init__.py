"""The serving problem: layouts, one step, the search, its certificate."""

"""Stages of two pools laid out domain by domain, every filling of every domain tried."""


def laid_out(chips, domain, first, count, second):
    """Most stages of `second` chips beside `count` of `first`: every filling of every domain."""
    sizes = [domain] * (chips // domain) + [chips % domain]
    large, other = max(first // domain, 1), max(second // domain, 1)
    taken = count * large if first > domain else 0
    best = -1
    for whole in range((chips // domain - taken) // other + 1 if second > domain else 1):
        reached = {0: 0}
        for size in sizes[taken + (whole * other if second > domain else 0) :]:
            several = {}
            for number, beside in reached.items():
                for here in range(size // first + 1 if first <= domain else 1):
                    more = (size - here * first) // second if second <= domain else 0
                    held = number + here
                    several[held] = max(several.get(held, -1), beside + more)
            reached = several
        placed = 0 if first > domain else count
        if taken <= chips // domain and placed in reached:
            best = max(best, reached[placed] + whole)
    return best

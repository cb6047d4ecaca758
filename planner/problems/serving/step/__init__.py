"""One step of a replica: layouts, symbol values, times, memory."""

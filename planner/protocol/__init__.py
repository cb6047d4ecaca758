"""Protocol of an answer, which every problem kind follows."""

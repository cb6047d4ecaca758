"""The book: seven chapters in the order of the lecture, set from the catalogue by one renderer."""

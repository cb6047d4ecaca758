"""What else could one do? The same question with one thing changed, solved again."""

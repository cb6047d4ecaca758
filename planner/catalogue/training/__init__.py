"""What is known of training: published runs, and what generations of software make of hardware."""

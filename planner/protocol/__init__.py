"""What is an answer? The protocol every problem kind follows."""

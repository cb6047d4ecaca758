"""What does training cost as a phase of a longer question? Layouts of whatever model it chooses."""

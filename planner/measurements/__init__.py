"""What was measured? Files of measurements, read into rows."""

"""What is true: equations, their units, their sources, their derivations."""

"""What did a change cost, and does a plan keep what was promised?"""

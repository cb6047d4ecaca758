"""What do the phases of a model's life cost, and at which size and tokens least?"""

"""Mutation of product code: are the numbers that a user reads guarded by the tests?"""

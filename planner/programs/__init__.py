"""How is it optimised?"""

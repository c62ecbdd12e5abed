"""Commands with a file of their own; ``PLUGIN`` of a module is a click command.

Owns nothing itself; must not know other commands.
"""

"""Searches: many executions looking for a violation within a budget.

Owns what is executed and in which order; must not know how a report looks.
"""

"""The controlled loop and what runs on it.

Owns everything that touches asyncio; must not know a third party, a search or a report.
"""

"""The HTML timeline as values: what stands where on the page, before anything is rendered.

Owns lanes, boxes, arrows, tables and source excerpts; must not know a template or a browser.
"""

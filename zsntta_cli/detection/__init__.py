"""Detect noise in a folder or a stream of the user's own: one verdict for each image.

`Detector` decides on features and needs only NumPy; `encode` makes them of images.
"""

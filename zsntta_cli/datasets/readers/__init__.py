"""Readers: from files to an ImageSet.

A reader takes the set's name and the data root. Where files are missing it may raise OSError:
`load_images` turns that into a line with the layout expected and where to get the set.
"""

"""Reports: results become documents for machines and views for people, and both become text in one of the formats.

`results` makes a report of each kind of result, `formats.render` makes text of it, `output.write` puts it somewhere.
Nothing is imported here: the command line asks for `formats.Format` alone to print its help.
"""

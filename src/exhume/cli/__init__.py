"""The command line: parse, call the library, print, exit. The only place that prints or exits."""

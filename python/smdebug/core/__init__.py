"""The import paths of the original package, for tools written for it.

Thin aliases over `smdebug` and its core; nothing of the package itself imports them.
"""

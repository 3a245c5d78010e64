"""Pictures: from bytes of anybody's making to pixels of one size, in processes of their own.

There is no torch in this room, so that a worker process starts in a moment and stays small.
"""

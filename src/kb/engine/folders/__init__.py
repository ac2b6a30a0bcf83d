"""Folders that the engine keeps in step with the disk.

Events make it quick, scans make it right. `folders.py` has the use cases, `keeper.py` the thread of one folder,
`sync.py` compares a folder with what is known of it, `plan.py` decides what to do, `walk.py` looks at the disk.
"""

"""Restore a backup into a database server: verified completely, then written in one transaction."""

from dataclasses import replace
from pathlib import Path

from kb.core.settings import Settings
from kb.store.backup.restore import Restored, storage_errors, unpack, unpacked_in
from kb.store.folder import DataFolder, remove
from kb.store.moving import move
from kb.store.open import open_store, sqlite_store

LARGEST_FILE_MB = 2**20  # what was accepted once comes back, whatever the limit is now


def restore_into(archive: Path, settings: Settings, *, force: bool = False) -> Restored:
    """Put a backup into the database of the settings. One that holds something is replaced only with `force`.

    The data folder, which holds no data then, lends the room.
    """
    settings = replace(settings, max_file_mb=LARGEST_FILE_MB)
    folder = DataFolder(settings.data_dir)
    folder.open()
    try:
        with storage_errors(settings.data_dir), unpacked_in(settings.data_dir) as part:
            done = unpack(archive, part)
            source = sqlite_store(replace(settings, data_dir=part, database_url=""), str.split)
            target = open_store(settings, str.split)
            try:
                for store in (source, target):
                    store.migrate()
                move(source, target, force=force)
            finally:
                source.database.close()
                target.database.close()
            remove(part)
    finally:
        folder.close()
    return done

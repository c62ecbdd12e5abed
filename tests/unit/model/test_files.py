"""Files that are written whole or not at all."""

import pytest

from harness.model.files import write_whole


def test_a_file_is_replaced_and_folders_are_made(tmp_path):
    """Readable by others, with nothing beside it."""
    file = tmp_path / "new" / "folder" / "file.txt"
    write_whole(file, "one")
    write_whole(file, "größe\n")
    assert file.read_text(encoding="utf-8") == "größe\n"
    assert file.stat().st_mode & 0o777 == 0o644
    assert list(file.parent.iterdir()) == [file]


def test_what_fails_leaves_nothing_behind(tmp_path):
    """Neither half a file nor a temporary one; what was there stays."""
    file = tmp_path / "file.txt"
    write_whole(file, "one")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "two \ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", "three")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.txt", "folder"]
    assert file.read_text(encoding="utf-8") == "one"

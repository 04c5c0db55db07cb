"""A cache that is damaged, foreign, read-only, full or gone: each is noticed, and said."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelc.config import config
from kernelc.errors import CacheNotWritable, KernelError
from kernelc.toolchain import build, build_many, cache, cache_root, compiler, probe

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
NOBODY = 65534


def test_the_root_is_the_setting_or_the_users_folder(tmp_path, monkeypatch):
    before = config.cache_dir
    try:
        config.cache_dir = tmp_path / "there"
        assert cache_root() == tmp_path / "there"
        config.cache_dir = "~/here"
        assert cache_root() == Path.home() / "here"
        config.cache_dir = None
        assert cache_root().name == "kernelc"
    finally:
        config.cache_dir = before


def test_all_that_is_written_belongs_to_its_owner_alone(use_cache, tmp_path, text):
    before = os.umask(0)
    try:
        config.cache_dir = root = use_cache(tmp_path / "deep" / "cache")
        shutil.rmtree(root)
        build(text(1), name="k")
        with pytest.raises(KernelError):
            build("!", name="bad")
    finally:
        os.umask(before)
    for path in [root, *root.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def damages():
    chance = random.Random(1)

    def bit(library: Path) -> None:
        data = bytearray(library.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        library.write_bytes(data)

    def cut(share: float):
        return lambda library: os.truncate(library, int(library.stat().st_size * share))

    def in_place_of_the_folder(library: Path) -> None:
        shutil.rmtree(library.parent)
        library.parent.write_text("")

    def in_place_of_the_library(library: Path) -> None:
        library.unlink()
        library.mkdir()

    yield from [(f"bit {i}", bit) for i in range(12)]
    yield from [(f"cut to {share}", cut(share)) for share in (0, 0.3, 0.999)]
    yield "longer", lambda library: library.write_bytes(library.read_bytes() + b"\0")
    yield "no library", Path.unlink
    yield "no sums", lambda library: (library.parent / cache.SUMS).unlink()
    yield "empty sums", lambda library: (library.parent / cache.SUMS).write_text("")
    yield "binary sums", lambda library: (library.parent / cache.SUMS).write_bytes(b"\xff\xfe\0")
    yield "empty folder", lambda library: [path.unlink() for path in library.parent.iterdir()]
    yield "file in place of the folder", in_place_of_the_folder
    yield "folder in place of the library", in_place_of_the_library


@pytest.mark.parametrize("damage", [pytest.param(damage, id=name) for name, damage in damages()])
def test_a_damaged_entry_is_built_again(root, text, answer, counting, damage):
    good = build(text(1), name="k")
    bytes_before = good.read_bytes()
    damage(good)
    again = build(text(1), name="k")
    assert again == good and again.read_bytes() == bytes_before and answer(again) == 1
    assert len(counting.kernels) == 2
    build(text(1), name="k")
    assert len(counting.kernels) == 2


@pytest.mark.parametrize("what", [[""], ["kernel.so", cache.SUMS], ["kernel.so", "kernel.cpp", cache.SUMS]], ids=str)
def test_an_entry_in_the_place_of_another_is_built_again(root, text, answer, counting, what):
    """Whole, or file by file: what a restored backup or a careless copy may do."""
    one, two = (build(text(n), name="k").parent for n in (1, 2))
    for part in what:
        (one / part).rename(root / "between")
        (two / part).rename(one / part)
        (root / "between").rename(two / part)
    assert [answer(build(text(n), name="k")) for n in (1, 2)] == [1, 2]
    assert len(counting.kernels) == 4


def test_a_process_that_has_a_damaged_library_open_keeps_it(root, text, answer):
    library = build(text(1), name="k")
    assert answer(library) == 1
    (library.parent / cache.SUMS).write_text("")
    rebuilt = build(text(1), name="k")
    assert answer(library) == answer(rebuilt) == 1


def test_the_cache_may_be_removed_at_any_time(root, text, answer):
    build(text(1), name="k")
    shutil.rmtree(root)
    assert answer(build(text(1), name="k")) == 1


def test_a_damaged_record_of_the_probe_is_made_again(root, text, answer, counting):
    build(text(1), name="k")
    for content in ("", "{", "[]", '{"command": []}', "\0"):
        probe._probed.cache_clear()
        for record in (root / "probe").glob("*.json"):
            record.write_text(content)
        assert answer(build(text(1), name="k")) == 1
    assert len(counting.kernels) == 1




@pytest.mark.parametrize("name", ["with space", "$HOME", "a;b", "quote'\"", "ü", "-I", "a:b"])
def test_the_cache_may_have_any_name(tmp_path, use_cache, text, answer, name, monkeypatch):
    """Neither the shell, nor Ninja, nor CMake takes a letter of it for its own: the probe runs here, too."""
    root = use_cache(tmp_path / name)
    shutil.rmtree(root / "probe")
    monkeypatch.setenv("KERNELC_CMAKE", "1")
    assert answer(build(text(1), name="k")) == 1


@needs_root
@pytest.mark.parametrize("part", ["", "kernels", "kernels/*", "kernels/*/kernel.so", "probe"])
def test_what_belongs_to_another_user_is_refused(root, text, part):
    build(text(1), name="k")
    (path,) = root.glob(part) if part else (root,)
    os.chown(path, NOBODY, -1)
    with pytest.raises(CacheNotWritable, match=f"{path} .*another user .uid {NOBODY}, you are 0"):
        build(text(1), name="k")


@pytest.mark.parametrize("bits", [0o020, 0o002])
@pytest.mark.parametrize("part", ["", "kernels", "kernels/*", "kernels/*/kernel.so", "probe"])
def test_what_others_can_write_is_refused(root, text, part, bits):
    build(text(1), name="k")
    (path,) = root.glob(part) if part else (root,)
    path.chmod(path.stat().st_mode | bits)
    with pytest.raises(CacheNotWritable, match=f"{path} .*can be written by others") as caught:
        build(text(1), name="k")
    assert f"chmod -R go-w '{path}'" in caught.value.advice
    path.chmod(path.stat().st_mode & ~bits)
    build(text(1), name="k")


def test_an_entry_that_is_a_link_is_refused(root, text, tmp_path):
    folder = build(text(1), name="k").parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CacheNotWritable):
        build(text(1), name="k")


def test_the_root_may_be_a_link(use_cache, tmp_path, text, answer):
    use_cache(tmp_path / "other disk")
    (tmp_path / "link").symlink_to(tmp_path / "other disk")
    config.cache_dir = tmp_path / "link"
    assert answer(build(text(1), name="k")) == 1


@pytest.mark.parametrize(
    "make", [Path.touch, lambda root: root.symlink_to("nowhere"), lambda root: root.symlink_to(root)]
)
def test_something_else_in_place_of_the_root_is_said(root, text, make):
    shutil.rmtree(root)
    make(root)
    with pytest.raises(CacheNotWritable, match=str(root)):
        build(text(1), name="k")


def test_a_read_only_cache_serves_what_it_has(small_disk, use_cache, text, answer):
    disk = small_disk(4 << 20)
    root = use_cache(disk / "cache")
    build(text(1), name="k")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert answer(build(text(1), name="k")) == 1
    with pytest.raises(CacheNotWritable, match=f"{root} cannot be written: Read-only file system") as caught:
        build(text(2), name="k")
    assert "KERNELC_CACHE_DIR" in caught.value.advice


def test_a_full_disk_is_said_whenever_it_gets_full(small_disk, use_cache, text, answer):
    """With any room that is left, a build succeeds or says so, and later builds are not harmed."""
    disk = small_disk(512 << 10)
    root = use_cache(disk / "cache")
    outcomes = set()
    for number, left in enumerate(range(0, 128 << 10, 8 << 10)):
        fill(disk / "ballast", left)
        try:
            assert answer(build(text(number), name="k")) == number
            outcomes.add("built")
        except CacheNotWritable as error:
            outcomes.add(str(error))
        (disk / "ballast").unlink()
        assert answer(build(text(number), name="k")) == number
        shutil.rmtree(root / "kernels")
    assert outcomes == {"built", f"[KC503] the kernel cache {root} cannot be written: No space left on device"}


def test_a_full_disk_is_no_missing_compiler(small_disk, use_cache, text, answer, monkeypatch):
    monkeypatch.setattr(probe, "_native_build", lambda: None)
    disk = small_disk(2 << 20)
    root = use_cache(disk / "cache")
    outcomes = set()
    for left in (0, 8 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20):
        shutil.rmtree(root / "probe", ignore_errors=True)
        probe._probed.cache_clear()
        fill(disk / "ballast", left)
        try:
            compiler()
            outcomes.add("probed")
        except CacheNotWritable as error:
            outcomes.add(str(error))
        (disk / "ballast").unlink()
    assert outcomes == {"probed", f"[KC503] the kernel cache {root} cannot be written: No space left on device"}


def fill(path: Path, left: int) -> None:
    """Write until only `left` bytes are free."""
    path.write_bytes(bytes(shutil.disk_usage(path.parent).free - left))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("function", ["mkstemp", "mkdtemp"])
def test_whatever_a_disk_refuses_is_said(root, text, monkeypatch, code, function):
    import tempfile

    def refuse(*arguments, **options):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, function, refuse)
    with pytest.raises(CacheNotWritable, match=f"{root} cannot be written: {os.strerror(code)}"):
        build(text(1), name="k")


@needs_root
def test_a_folder_without_permission_is_said(tmp_path, process, use_cache, text):
    """Root may write anywhere, so a process of somebody else tries."""
    use_cache(tmp_path / "cache")
    script = f"""
import os, kernelc.toolchain as t, kernelc.errors as e, tempfile, subprocess
os.setuid({NOBODY})
try:
    t.build({text(1)!r}, name="k")
except e.CacheNotWritable as error:
    print(error)
"""
    said = process(script).communicate()[0]
    assert f"{tmp_path / 'cache'} cannot be written: Permission denied" in said


def test_build_many_reports_damage_and_builds_in_one_go(root, text, answer, counting):
    libraries = build_many({str(i): text(i) for i in range(4)})
    libraries["2"].write_bytes(b"")
    again = build_many({str(i): text(i) for i in range(5)})
    assert [answer(again[str(i)]) for i in range(5)] == list(range(5))
    assert len(counting.kernels) == 6

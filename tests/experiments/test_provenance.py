import subprocess

import pytest

import nysboost as nb
from nysboost.experiments import provenance


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("NYSBOOST_COMMIT", raising=False)
    provenance.commit.cache_clear()
    provenance.code_digest.cache_clear()
    yield
    provenance.commit.cache_clear()
    provenance.code_digest.cache_clear()


def git(folder, *words):
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    done = subprocess.run(
        ["git", *name, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with a package in it, in the place of ours."""
    (tmp_path / "boosting").mkdir()
    (tmp_path / "boosting" / "rules.py").write_text("a = 1\n")
    (tmp_path / "_version.py").write_text("")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    monkeypatch.setattr(provenance, "NUMBERS_COME_FROM", ("_version.py", "boosting"))
    return tmp_path


def test_the_commit_is_that_of_the_checkout(checkout):
    head = git(checkout, "rev-parse", "HEAD")
    assert provenance.commit() == head[:12]
    assert provenance.made_with() == f"{nb.__version__} ({head[:12]})"


def test_changed_files_are_marked(checkout):
    (checkout / "_version.py").write_text("1")
    assert provenance.commit() == git(checkout, "rev-parse", "HEAD")[:12] + "+"


def test_a_package_that_the_repository_around_it_does_not_track_has_no_commit(checkout):
    git(checkout, "rm", "--cached", "_version.py")
    assert provenance.commit() == ""
    assert provenance.made_with() == nb.__version__


def test_a_copy_without_a_repository_is_told_its_commit(checkout, monkeypatch):
    monkeypatch.setenv("NYSBOOST_COMMIT", "abc")
    assert provenance.commit() == "abc"


def test_the_digest_changes_with_the_code_and_not_with_its_line_ends(checkout):
    def digest():
        provenance.code_digest.cache_clear()
        return provenance.code_digest()

    before = digest()
    (checkout / "boosting" / "rules.py").write_bytes(b"a = 1\r\n")
    (checkout / "README.md").write_text("other")
    assert digest() == before
    (checkout / "boosting" / "rules.py").write_text("a = 2\n")
    assert digest() != before


def test_all_that_numbers_come_from_is_there():
    for part in provenance.NUMBERS_COME_FROM:
        assert (provenance.PACKAGE / part).exists(), part

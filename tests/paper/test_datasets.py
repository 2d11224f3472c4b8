import bz2
import gzip
import struct
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from nysboost.paper import datasets
from nysboost.user_error import UserError


@pytest.fixture(autouse=True)
def no_folders_and_no_network(monkeypatch, tmp_path):
    monkeypatch.delenv("NYSBOOST_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")


def test_files_of_the_folder_are_prepared_as_the_paper_has_them(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (50, 16)).astype(np.uint8)
    X[:, 3] = 7
    np.savez_compressed(tmp_path / "pendigits.npz", X=X)
    np.savez(tmp_path / "mnist.npz", X=np.full((3, 4), 255, dtype=np.uint8))
    np.savez(tmp_path / "glove.npz", X=np.full((3, 4), 2.5, dtype=np.float32))
    np.savez(tmp_path / "ijcnn1.npz", X=np.arange(12.0).reshape(6, 2), n_train=np.int64(4))
    drawn = datasets.load("pendigits", tmp_path).draw(50, rng)
    assert drawn.mean(axis=0) == pytest.approx(np.zeros(16), abs=1e-12)
    assert np.delete(drawn.std(axis=0), 3) == pytest.approx(np.ones(15))
    assert not drawn[:, 3].any()
    assert (datasets.load("mnist", tmp_path).draw(2, rng) == 1).all()
    assert datasets.load("ijcnn", tmp_path).values.shape == (4, 2)  # its training rows alone
    monkeypatch.setenv("NYSBOOST_DATA", str(tmp_path))
    assert (datasets.load("glove").draw(2, rng) == 2.5).all()


def test_the_simulation_and_digits_need_no_file():
    rng = np.random.default_rng(0)
    assert datasets.load("simulation").draw(10, rng).shape == (10, 2)
    assert datasets.load("digits").draw(10, rng).shape == (10, 64)
    with pytest.raises(UserError, match="1797"):
        datasets.load("digits").draw(2000, rng)


def test_other_values_have_another_fingerprint(tmp_path):
    prints = set()
    for i in range(3):
        np.savez(tmp_path / "glove.npz", X=np.full((3, 2), float(i)))
        prints.add(datasets.load("glove", tmp_path).fingerprint())
    assert len(prints) == 3


def test_without_file_and_network_a_sentence_says_what_to_put_where(tmp_path):
    pytest.importorskip("pooch", reason="pooch is not installed")
    with pytest.raises(UserError, match=r"mnist\.npz.*--data-dir or NYSBOOST_DATA"):
        datasets.load("mnist", tmp_path)


def test_a_missing_folder_and_a_broken_file_are_sentences(tmp_path):
    (tmp_path / "mnist.npz").write_bytes(b"PK nothing")
    np.savez(tmp_path / "glove.npz", X=np.array([object()]))
    np.savez(tmp_path / "pendigits.npz", X=np.zeros(3))
    (tmp_path / "ijcnn1.npz").write_bytes(b"neither zip nor array")
    for name, folder, says in (
        ("mnist", tmp_path / "nowhere", "does not exist"),
        ("mnist", tmp_path, "cannot be read"),
        ("glove", tmp_path, "cannot be read"),
        ("ijcnn", tmp_path, r"cannot be read as a \.npz file with an array X, or it is damaged\.$"),
        ("pendigits", tmp_path, "matrix of numbers"),
        ("covertyp", tmp_path, "covertype"),
    ):
        with pytest.raises(UserError, match=says):
            datasets.load(name, folder)


def test_the_list_shows_the_papers_sizes_and_where_files_were_found(tmp_path):
    np.savez(tmp_path / "glove.npz", X=np.zeros((16, 300), dtype=np.float32))
    rows = {row["name"]: row for row in datasets.list_all(tmp_path)}
    assert rows["glove"]["points × dimension"] == "400,000 × 300"
    assert rows["glove"]["found"] == str(tmp_path / "glove.npz")
    assert rows["mnist"]["found"].startswith("not found")
    assert rows["simulation"]["found"] == "built in"
    assert datasets.load("glove", tmp_path).shape == (16, 300)


def idx(images):
    return struct.pack(">4i", 2051, *images.shape) + images.tobytes()


def test_each_source_is_parsed(tmp_path):
    images = np.arange(2 * 784).astype(np.uint8).reshape(2, 28, 28)
    paths = [tmp_path / "a.gz", tmp_path / "b.gz"]
    for path in paths:
        path.write_bytes(gzip.compress(idx(images)))
    assert np.array_equal(datasets.parse_mnist(paths), np.tile(images.reshape(2, 784), (2, 1)))

    with zipfile.ZipFile(tmp_path / "g.zip", "w") as archive:
        numbers = " ".join(["0.5"] * 300)
        archive.writestr("glove.6B.300d.txt", f"the {numbers}\n. . {numbers}\n")
    assert datasets.parse_glove([tmp_path / "g.zip"]).shape == (2, 300)

    (tmp_path / "c.gz").write_bytes(gzip.compress(b"2596,-51,3\n2590,56,5\n"))
    covertype = datasets.DATASETS["covertype"].parse([tmp_path / "c.gz"])
    assert covertype.tolist() == [[2596, -51], [2590, 56]]

    for name, row in (("p.tra", "47,100,8\n"), ("p.tes", " 0, 89,2\n")):
        (tmp_path / name).write_text(row)
    pendigits = datasets.DATASETS["pendigits"].parse([tmp_path / "p.tra", tmp_path / "p.tes"])
    assert pendigits.tolist() == [[47, 100], [0, 89]]

    (tmp_path / "i.bz2").write_bytes(bz2.compress(b"-1 6:1 11:-0.731854\n1 22:0.5\n"))
    ijcnn = datasets.parse_ijcnn([tmp_path / "i.bz2"])
    assert ijcnn.shape == (2, 22)
    assert ijcnn[0, 10] == np.float32(-0.731854)


@pytest.fixture
def server(tmp_path):
    """Return the address of a server of this machine, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}", folder
        served.shutdown()


def test_a_download_is_checked_and_kept(server, tmp_path):
    pytest.importorskip("pooch", reason="pooch is not installed")
    address, folder = server
    (folder / "p.tra").write_text("1,2,0\n")
    known, path = datasets.DATASETS["pendigits"], tmp_path / "kept" / "pendigits.npz"
    right = replace(known, downloads={f"{address}/p.tra": ""}, digest="")
    with pytest.raises(UserError, match="does not hold the expected data"):
        datasets.fetch(replace(right, digest="another"), path)
    assert not path.exists()
    with pytest.raises(UserError, match="gave HTTPError"):
        datasets.fetch(replace(right, downloads={f"{address}/nowhere": ""}), path)
    datasets.fetch(right, path)
    assert datasets.load("pendigits", path.parent).values.tolist() == [[1, 2]]


def test_every_download_has_a_checksum_of_its_files_or_of_its_values():
    for dataset in datasets.DATASETS.values():
        assert dataset.digest or all(dataset.downloads.values())

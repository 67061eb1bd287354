"""The recordings that runs are trained and tested on, made or found once and then reused."""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PAPER_SIZE = {"shd": (8156, 2264)}  # of SHD; N-MNIST's is that of its folder
TEST_SHARE = 0.4  # test recordings for each training recording, where their number is not the paper's
SMALLEST_TEST_PART = 500  # an N-MNIST folder whose own Test is smaller can't tell one percent from two
FOLDS = 5
FEWEST = 20  # what `spikeloom data spoken-digits` makes at least


@dataclass(frozen=True)
class Recordings:
    train: Path
    test: Path
    train_samples: int
    test_samples: int
    origin: str  # for the page
    identity: str  # the same for the same recordings


class MissingData(Exception):
    """Why a set has to be left out."""


def sizes(task, samples):
    if samples is None:
        return PAPER_SIZE[task]
    return max(FEWEST, samples), max(FEWEST, round(TEST_SHARE * samples))


def spoken_digits(options, run_command):
    train, test = sizes("shd", options.samples)
    folder = options.data / f"shd-{train}-{test}"
    if not (folder / "train.h5").exists() or not (folder / "test.h5").exists():
        command = [options.spikeloom, "data", "spoken-digits", "--out", folder, "--train", train, "--test", test]
        command += ["--seed", 1, *(["--threads", options.threads] if options.threads else [])]
        try:
            run_command(command)
        except subprocess.CalledProcessError as error:
            raise MissingData(f"`spikeloom data spoken-digits` ended with {error.returncode}") from error
    origin = (
        "made by `spikeloom data spoken-digits`, in the layout of SHD: 700 channels, 20 classes; "
        "the test set is spoken by voices that training never hears"
    )
    return Recordings(folder / "train.h5", folder / "test.h5", train, test, origin, f"spoken digits {train} {test}")


def recordings_by_label(part):
    """Label to its recordings, in the order of their names."""
    labels = sorted((path for path in part.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    return {label.name: sorted(label.glob("*.bin")) for label in labels}


def balanced(by_label, samples):
    """About as many of each label, `samples` in all (None: all); the first ones."""
    chosen, depth = [], 0
    while samples is None or len(chosen) < samples:
        layer = [(label, files[depth]) for label, files in by_label.items() if depth < len(files)]
        if not layer:
            break
        chosen += layer
        depth += 1
    return chosen[:samples]


def split_nmnist(folder, samples):
    """(label, file) of the training and of the test recordings, and what they are. Where the folder's own Test is too
    small to measure on, every fifth recording of each label is held out instead."""
    train, test = recordings_by_label(folder / "Train"), recordings_by_label(folder / "Test")
    held_out = sum(map(len, test.values()))
    tests = None if samples is None else max(FEWEST, round(TEST_SHARE * samples))
    if held_out >= SMALLEST_TEST_PART:
        return balanced(train, samples), balanced(test, tests), "the folder's own Train and Test"
    together = {label: files + test.get(label, []) for label, files in train.items()}
    kept = {label: [f for i, f in enumerate(files) if i % FOLDS] for label, files in together.items()}
    fold = {label: files[::FOLDS] for label, files in together.items()}
    total = sum(map(len, together.values()))
    origin = f"a sample of {total} recordings, of which every fifth of each label is held out"
    return balanced(kept, samples), balanced(fold, tests), origin


def link_all(files, folder):
    for label, file in files:
        place = folder / label
        place.mkdir(parents=True, exist_ok=True)
        # Train and Test may use one name twice.
        (place / f"{file.parent.parent.name.lower()}-{file.name}").symlink_to(file.resolve())


def nmnist(options, _run_command):
    """Folders of links to the chosen recordings: as many as asked for, without copying any."""
    source = options.nmnist
    if source is None:
        raise MissingData("no recordings: name a folder of N-MNIST with --nmnist, or in SPIKELOOM_NMNIST")
    if not (source / "Train").is_dir() or not (source / "Test").is_dir():
        raise MissingData(f"{source}: has no folders Train and Test")
    train, test, origin = split_nmnist(source, options.samples)
    if len(train) < FEWEST or len(test) < FEWEST:
        raise MissingData(f"{source}: {len(train)} + {len(test)} recordings; needed: at least {FEWEST} + {FEWEST}")
    folder = options.data / f"nmnist-{len(train)}-{len(test)}"
    listed = "".join(f"{label} {file.resolve()}\n" for label, file in (*train, *test))
    index = folder / "recordings.txt"
    if not index.exists() or index.read_text() != listed:
        shutil.rmtree(folder, ignore_errors=True)
        beside = folder.with_name(folder.name + ".part")
        shutil.rmtree(beside, ignore_errors=True)
        link_all(train, beside / "train/Train")
        link_all(test, beside / "test/Test")
        (beside / "recordings.txt").write_text(listed)
        beside.rename(folder)
    identity = hashlib.sha256(listed.encode()).hexdigest()
    return Recordings(folder / "train", folder / "test", len(train), len(test), origin, identity)


MAKERS = {"nmnist": nmnist, "shd": spoken_digits}


def recordings_of(task, options, run_command):
    return MAKERS[task.name](options, run_command)

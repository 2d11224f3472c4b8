"""Every foreseeable error ends a command with a sentence and a code that stays the same."""

import errno
import json

import pytest

from nysboost.cli.errors import (
    CommandError,
    DataError,
    ExistsError,
    ModelError,
    NoFileError,
    NoRoomError,
    sentences,
    wrong_call,
)

CASES = [
    (CommandError("Two of them."), 2, "Two of them."),
    (NoFileError("No such form."), 3, "No such form."),
    (FileNotFoundError(errno.ENOENT, "not there", "rows.npy"), 3, "There is no file rows.npy."),
    (PermissionError(errno.EACCES, "no", "rows.npy"), 3, "rows.npy may not be read or written"),
    (DataError("No rows."), 4, "No rows."),
    (ValueError("A NaN."), 4, "A NaN."),
    (ModelError("No model."), 5, "No model."),
    (ExistsError("There already."), 6, "There already."),
    (NoRoomError("Too large."), 7, "Too large."),
    (MemoryError("2 GB"), 7, "The memory is too small: 2 GB. Try --max-memory."),
    (OSError(errno.ENOSPC, "No space"), 7, "The output could not be written: No space. Make room"),
    (OSError(errno.EIO, "I/O error"), 7, "I/O error."),
    (KeyboardInterrupt(), 130, "Stopped. Nothing was written."),
]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("error", "code", "says"), CASES)
def test_an_error_is_a_sentence_and_a_code(error, code, says, as_json, capsys):
    with pytest.raises(SystemExit) as ended, sentences(as_json=as_json):
        raise error
    assert ended.value.code == code
    written = capsys.readouterr()
    assert written.out == ""
    if as_json:
        said = json.loads(written.err)
        assert said["code"] == code
        assert says in said["error"]
    else:
        assert written.err.startswith(f"nysboost: {says}")


def test_an_error_of_the_program_itself_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), sentences(as_json=False):
        raise ZeroDivisionError


def test_a_value_that_an_option_gave_is_a_wrong_call():
    with pytest.raises(CommandError, match="sigma must be positive") as raised, wrong_call():
        raise ValueError("sigma must be positive.")
    assert raised.value.code == 2

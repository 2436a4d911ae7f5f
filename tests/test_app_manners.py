"""The command line in careless hands: one sentence, a fitting exit status, no half-written file, Ctrl+C at any time."""

from __future__ import annotations

import argparse
import io
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from app.cli import run, show
from app.cli.model_code import run_model_code
from app.cli.parser import build_parser
from app.places import PlaceError, check_place, replaced, write_text
from app.session import save_session
from app.sources import SourceError
from app.sources.load import LoadedSource
from app.worker.own_faults import work_on
from compiler.report import Report
from tests.fake_reports import transformer_report
from tests.test_app_cli import MAIN, fails


@pytest.fixture(scope="module")
def report() -> Report:
    return transformer_report(60)


@pytest.fixture
def session(report: Report, tmp_path: Path) -> Path:
    save_session(tmp_path / "x.fscope", report)
    return tmp_path / "x.fscope"


def python(*arguments: str) -> subprocess.Popen[str]:
    """Our command line in a process of its own, which Ctrl+C may end, also where this one was told to ignore it."""
    return subprocess.Popen(
        [sys.executable, str(MAIN), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )


# command, with {} where the place to write to goes, and the suffix that it must have
WRITING = [
    ("compile example:softmax --target h100 -o {}", ".fscope"),
    ("import {session} -o {}", ".fscope"),
    ("record -o {} -- python", ".fscope"),
    ("minify example:softmax --target h100 -o {}", ".py"),
    ("export {session} --html {}", ".html"),
    ("export {session} --svg {}", ".svg"),
    ("export {session} --csv {}", ".csv"),
    ("export {session} --kernel k -o {}", ".py"),
    ("screenshot {session} -o {}", ".png"),
]


@pytest.mark.parametrize(("command", "suffix"), WRITING)
class TestPlaces:
    def words(self, command: str, session: Path, place: Path) -> list[str]:
        return [word.replace("{session}", str(session)).replace("{}", str(place)) for word in command.split()]

    def test_no_such_folder_is_told_before_the_work(
        self, command: str, suffix: str, session: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        place = session.parent / "none" / f"y{suffix}"
        line = fails(capsys, *self.words(command, session, place))
        assert f"{place} cannot be written: there is no folder {place.parent}. Choose another place." in line

    def test_a_folder(self, command: str, suffix: str, session: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert "it is a folder" in fails(capsys, *self.words(command, session, session.parent))

    def test_a_slip_of_the_hand_writes_over_nothing(
        self, command: str, suffix: str, session: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = session.parent / "model.txt"
        other.write_text("precious")
        line = fails(capsys, *self.words(command, session, other), status=2)
        assert f"{other} does not end in {suffix}" in line
        assert other.read_text() == "precious"


class TestWriting:
    def test_a_failure_half_way_keeps_the_old_file_and_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object, **__: object) -> int:
            raise OSError(28, "No space left on device")

        (tmp_path / "k.py").write_text("old")
        monkeypatch.setattr(Path, "write_text", full)
        with pytest.raises(PlaceError, match="cannot be written: No space left on device"):
            write_text(tmp_path / "k.py", "new")
        assert (tmp_path / "k.py").read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["k.py"]

    def test_a_name_as_long_as_the_file_system_takes(self, tmp_path: Path) -> None:
        write_text(tmp_path / f"{'a' * 252}.py", "text")
        assert (tmp_path / f"{'a' * 252}.py").read_text() == "text"

    def test_an_interrupt_leaves_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt), replaced(tmp_path / "k.py"):
            raise KeyboardInterrupt
        assert os.listdir(tmp_path) == []

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no such folder")
    def test_a_folder_that_only_seems_to_be_writable(self, session: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert "/proc/x.csv cannot be written" in fails(capsys, "export", str(session), "--csv", "/proc/x.csv")
        assert "/proc/x.fscope cannot be written" in fails(capsys, "record", "-o", "/proc/x.fscope", "--", "python")

    def test_asking_leaves_nothing(self, tmp_path: Path) -> None:
        check_place(tmp_path / "x.py", ".py")
        assert os.listdir(tmp_path) == []

    def test_a_model_is_not_minified_into_itself(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        model = tmp_path / "model.py"
        model.write_text("def model(): ...\n")
        arguments = ("minify", f"{model}:model", "--target", "h100", "-o", str(model))
        assert "is the model itself" in fails(capsys, *arguments, status=2)


class TestWords:
    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (
                ["shwo", "x.fscope"],
                "fusescope: there is no command 'shwo', did you mean 'show'? (see fusescope --help)",
            ),
            (["--debug", "gallery"], "fusescope: there is no command 'gallery' (see fusescope --help)"),
            (["show", "x", "--jsn"], "fusescope show: unrecognized arguments: --jsn (see fusescope show --help)"),
            (["diff", "a", "b", "c"], "fusescope diff: unrecognized arguments: c (see fusescope diff --help)"),
            (["show", "x", "--ir", "ptx"], "fusescope: --ir goes with --kernel only."),
            (["export", "x", "--kernel", ""], "fusescope: --kernel needs -o FILE."),
        ],
    )
    def test_what_is_wrong_is_named(
        self, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fails(capsys, *arguments, status=2).startswith(sentence)

    @pytest.mark.parametrize("command", ["compile", "bench", "verify", "numerics", "minify"])
    def test_what_a_hint_says_to_add_can_be_added(self, command: str) -> None:
        assert build_parser().parse_args([command, "x.pt2", "--allow-unsafe"]).allow_unsafe

    @pytest.mark.parametrize(
        ("file", "sentence"),
        [
            ("gone.fscope", "fusescope: There is no file gone.fscope."),
            ("gone.py:model", "fusescope: There is no file gone.py."),
            ("gone.pt2", "fusescope: There is no file gone.pt2."),
            ("example:gone", "fusescope: There is no example called 'gone'."),
            ("x" * 300, "fusescope: There is no file xxx"),
        ],
    )
    def test_what_is_not_there_opens_no_window(
        self, file: str, sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert fails(capsys, "open", file).startswith(sentence)

    def test_a_view_that_there_is_none_of(self, session: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ("screenshot", str(session), "-o", str(session.with_suffix(".png")), "--view", "nope")
        line = fails(capsys, *arguments, status=2)
        assert line.startswith("fusescope: There is no view called 'nope'. Choose one of graph, ")

    def test_a_kernel_with_no_name(self, session: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert "no kernel called ''" in fails(capsys, "show", str(session), "--kernel", "")

    def test_a_hint_names_a_few_kernels_the_most_alike_first(self, report: Report) -> None:
        kernels = [type(report.kernels[0])(name=f"kernel_{number}") for number in range(40)]
        many = Report("fusescope", "x", report.target, kernels=kernels)
        with pytest.raises(show.CommandError) as caught:
            show.find_kernel(many, "kernel_39x")
        assert caught.value.hint.startswith("The session's kernels: kernel_39, ")
        assert caught.value.hint.endswith("… (40 in all).")
        assert caught.value.hint.count("kernel_") == 12


class TestSentences:
    def test_a_folder_is_no_session(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        line = fails(capsys, "show", str(tmp_path))
        assert f"{tmp_path} cannot be read: it is a folder. " in line
        assert "'import FOLDER -o X.fscope'" in line

    def test_a_line_break_in_a_name(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "There is no file a\\nb\\x1b.fscope." in fails(capsys, "show", "a\nb\x1b.fscope")

    def test_a_fault_of_ours(
        self, session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def broken(report: Report) -> str:
            raise LookupError("our slip\nand more")

        monkeypatch.setattr(show, "summary", broken)
        assert fails(capsys, "show", str(session)) == (
            "fusescope: The command 'show' stopped with LookupError: our slip. "
            "This looks like a fault of Fusescope; --debug shows where."
        )
        assert run(["show", str(session), "--debug"]) == 1
        assert "Traceback" in capsys.readouterr().err

    def test_a_library_that_does_not_load(
        self, session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def broken(report: Report) -> str:
            raise ImportError("libEGL.so.1: cannot open shared object file", name="PySide6.QtGui")

        monkeypatch.setattr(show, "summary", broken)
        line = fails(capsys, "show", str(session))
        assert line == "fusescope: PySide6 cannot be loaded: libEGL.so.1: cannot open shared object file. " + (
            "'doctor' says what is missing."
        )

    def test_a_terminal_that_cannot_write_every_character(self, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", terminal)
        assert run(["show", str(session)]) == 0

    @pytest.mark.parametrize(
        ("body", "sentence"),
        [
            ("raise ValueError('word ' * 5000)", "raised ValueError: word word"),
            ("raise type('Stop', (BaseException,), {})('enough')", "raised Stop: enough."),
            ("raise type('Mute', (Exception,), {'__str__': lambda self: 1})()", "raised Mute."),
        ],
    )
    def test_what_a_model_raises(
        self, body: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = tmp_path / "careless_model.py"
        model.write_text(f"def careless_model():\n    {body}\n")
        line = fails(capsys, "compile", str(model), "--target", "h100")
        assert sentence in line
        assert len(line) < 800


class TestModels:
    def test_a_models_own_fault_is_told_where_the_compiler_fails_on_it(self) -> None:
        def broken(x: int) -> int:
            raise ValueError("by itself")

        with pytest.raises(SourceError, match="raised ValueError: by itself"):
            work_on(LoadedSource(broken, (1,), "broken", False, {}), False, lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            work_on(LoadedSource(lambda x: x, (1,), "sound", False, {}), False, lambda: 1 // 0)

    def test_a_step_with_a_backward_of_its_own_is_told_of_training(self) -> None:
        import torch

        from compiler.errors import CompileError
        from compiler.pipeline import run_once

        weight = torch.ones(3, requires_grad=True)

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = (x * weight).exp().sum()
            loss.backward()
            return loss

        loaded = LoadedSource(step, (torch.ones(3),), "step", False, {})
        with pytest.raises(SourceError) as caught:
            work_on(loaded, False, lambda: run_once(step, loaded.inputs, False))
        assert "--train" in caught.value.hint
        with pytest.raises(CompileError, match="runs a backward itself"):
            work_on(loaded, True, lambda: run_once(step, loaded.inputs, True))

    def test_what_dynamo_warns_of_is_left_to_the_sentence(self, recwarn: pytest.WarningsRecorder) -> None:
        def work() -> None:
            warnings.warn("Dynamo does not know how to trace the builtin `sys.exit.`\nIf it is …", stacklevel=1)
            warnings.warn("the model's own", stacklevel=1)

        run_model_code(work, argparse.Namespace(debug=False, doing=lambda text: None), "loaded it")
        assert [str(warning.message) for warning in recwarn] == ["the model's own"]

    def test_numerics_knows_its_options(self, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ("numerics", "example:softmax", "--target", "h100", "--option", "row=4")
        assert "Neither softmax nor the compiler has an option 'row'." in fails(capsys, *arguments)

    def test_only_ours_is_on_stdout_and_a_fault_is_told_once(self, tmp_path: Path) -> None:
        """What C code and other processes write too; torch's own log of the fault comes with its traceback."""
        model = tmp_path / "model.py"
        model.write_text(
            "import os, torch\n\ndef model():\n    os.system('echo from a child')\n    os.write(1, b'from C')\n"
            "    return torch.nn.Linear(3, 3), (torch.ones(4),)\n"
        )
        process = python("compile", str(model), "--target", "h100", "--json")
        out, errors = process.communicate()
        assert process.returncode == 1
        assert out == ""
        assert "from a child" in errors
        assert "from C" in errors
        assert "Traceback" not in errors
        assert "shapes cannot be multiplied" in errors.splitlines()[-1]

    def test_of_a_fault_of_inductors_only_our_sentence_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its log tells of a folder that it leaves, and that is gone with the command."""
        model = tmp_path / "model.py"
        model.write_text(
            "import torch\n\n"
            "def fails(*args, **keywords):\n    raise AssertionError('no such lowering')\n\ndef model():\n"
            "    from torch._inductor import lowering\n    lowering.lowerings[torch.ops.aten.erfinv.default] = fails\n"
            "    return torch.erfinv, (torch.ones(4),)\n"
        )
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        monkeypatch.setenv("TMPDIR", str(temporary))
        process = python("compile", str(model), "--target", "h100", "--compiler", "inductor")
        _, errors = process.communicate()
        assert process.returncode == 1
        assert "no such lowering" in errors.splitlines()[-1]
        assert "cache dir" not in errors
        assert not list(temporary.iterdir())

    def test_a_break_is_told_by_the_report_and_not_by_torchs_log_too(self, tmp_path: Path) -> None:
        model = tmp_path / "model.py"
        model.write_text("import torch\n\ndef model():\n    return lambda x: x * x.sum().item(), (torch.ones(4),)\n")
        process = python("compile", str(model), "--target", "h100")
        out, errors = process.communicate()
        assert process.returncode == 0
        assert "Graph breaks:" in out
        assert "Graph break" not in errors

    @pytest.mark.skipif(sys.platform == "win32", reason="the signal is another one there")
    def test_ctrl_c_ends_a_model_that_catches_it(self, tmp_path: Path) -> None:
        model = tmp_path / "model.py"
        model.write_text(
            "import sys, time\n\ndef model():\n    print('begun', flush=True)\n    while True:\n        try:\n"
            "            time.sleep(0.01)\n        except BaseException:\n            pass\n"
        )
        process = python("compile", str(model), "--target", "h100")
        assert process.stderr is not None
        assert any(line == "begun\n" for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
        assert (process.returncode, out, errors) == (-signal.SIGINT, "", "")  # 130 to a shell

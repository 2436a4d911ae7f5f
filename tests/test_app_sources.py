"""Sources: each form loads, and each fault is one clear sentence that names the place."""

from __future__ import annotations

import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.sources import SourceError, SourceKind, is_source, parse_source
from app.sources.load import LoadedSource, load_source
from app.sources.size_text import is_arithmetic

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a Python file; the modules made of such files are forgotten at the end."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    yield write_file
    ours = [name for name, module in sys.modules.items() if str(tmp_path) in (getattr(module, "__file__", "") or "")]
    for name in ours:
        del sys.modules[name]


def load(source: str | Path, **options: str) -> LoadedSource:
    return load_source(parse_source(str(source)), options)


def fault(source: str | Path, **options: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        load(source, **options)
    error = caught.value
    assert "\n" not in error.message
    assert "Traceback" not in error.message
    return error


GOOD = """
    import torch
    TRAINING = True

    def make(size: int = 4, scale: float = 1.0, flag: bool = False):
        return torch.nn.Linear(size, size), (torch.full((2, size), scale if not flag else -1.0),)
"""


class TestParse:
    def test_example_with_options(self) -> None:
        spec = parse_source("example:gpt2?batch=8&length=64")
        assert (spec.kind, spec.name) == (SourceKind.EXAMPLE, "gpt2")
        assert spec.options == {"batch": "8", "length": "64"}

    def test_file_with_function(self, write: Write) -> None:
        path = write("m.py", GOOD)
        spec = parse_source(f"{path}:make")
        assert (spec.kind, spec.path, spec.function, spec.name) == (SourceKind.FILE, path, "make", "make")
        assert parse_source(str(path)).name == "m"

    def test_module(self) -> None:
        spec = parse_source("package.sub:make")
        assert (spec.kind, spec.module, spec.function) == (SourceKind.MODULE, "package.sub", "make")

    def test_name_with_a_question_mark_is_a_file(self, write: Write) -> None:
        path = write("what?.py", GOOD)
        assert parse_source(str(path)).path == path

    @pytest.mark.parametrize("text", ["", "gpt2", "a:b:c", "example.txt"])
    def test_not_a_source(self, text: str) -> None:
        with pytest.raises(SourceError, match="is not a source") as caught:
            parse_source(text)
        assert "FILE.pt2" in caught.value.hint

    @pytest.mark.parametrize("text", ["missing.py", "missing.py:make", "missing.pt2"])
    def test_missing_file(self, text: str) -> None:
        with pytest.raises(SourceError, match="There is no file missing"):
            parse_source(text)

    @pytest.mark.parametrize("text", ["a" * 5000 + ".py", "a" * 5000 + ".pt2", "~no_such_user_here/m.py"])
    def test_a_name_that_no_file_can_have(self, text: str) -> None:
        with pytest.raises(SourceError, match="cannot be read"):
            parse_source(text)

    def test_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "x.py"
        folder.mkdir()
        with pytest.raises(SourceError, match="is a folder"):
            parse_source(str(folder))

    def test_other_kind_of_file(self, write: Write) -> None:
        with pytest.raises(SourceError, match=r"neither a \.py file nor a \.pt2"):
            parse_source(str(write("notes.txt", "")))


class TestPython:
    def test_only_function_is_found_and_files_are_kept(self, write: Write) -> None:
        path = write("mine.py", GOOD)
        loaded = load(path)
        assert loaded.training
        assert loaded.inputs[0].shape == (2, 4)
        assert list(loaded.files) == [str(path)]
        assert "def make" in loaded.files[str(path)]

    def test_options_that_name_a_parameter_are_converted_and_the_rest_remain(self, write: Write) -> None:
        loaded = load(write("mine2.py", GOOD), size="8", scale="0.5", flag="false", max_fusion="3")
        assert loaded.inputs[0].shape == (2, 8)
        assert float(loaded.inputs[0][0, 0]) == 0.5
        assert loaded.remaining == {"max_fusion": "3"}

    def test_neighbours_are_importable_and_kept(self, write: Write) -> None:
        helper = write("neighbour_of_mine.py", "WIDTH = 3\n")
        path = write(
            "mine3.py",
            """
            import torch
            from neighbour_of_mine import WIDTH

            def mine3():
                return torch.relu, torch.ones(WIDTH)
            """,
        )
        loaded = load(path)
        assert loaded.inputs[0].shape == (3,)  # a bare tensor is taken as the only input
        assert set(loaded.files) == {str(path), str(helper)}

    def test_dataclass_in_the_file(self, write: Write) -> None:
        path = write(
            "mine4.py",
            """
            from __future__ import annotations
            from dataclasses import dataclass
            import torch

            @dataclass
            class Config:
                width: int = 2

            def model(config: Config = Config()):
                return torch.relu, (torch.ones(config.width),)
            """,
        )
        assert load(path).inputs[0].shape == (2,)

    def test_module_function(self, write: Write, tmp_path: Path) -> None:
        write("importable_mine.py", GOOD)
        sys.path.insert(0, str(tmp_path))
        assert load("importable_mine:make").inputs[0].shape == (2, 4)
        assert "has no function called 'other'" in fault("importable_mine:other").message
        assert "There is no module" in fault("nowhere_to_be_found:make").message

    def test_syntax_error_names_file_and_line(self, write: Write) -> None:
        path = write("bad.py", "x = 1\ndef f(:\n    pass\n")
        assert fault(path).message.startswith(f"{path}:2: SyntaxError: ")

    def test_null_byte(self, write: Write) -> None:
        assert "null byte" in fault(write("null.py", "x = '\0'")).message

    def test_import_error_names_the_users_line(self, write: Write) -> None:
        path = write("needs.py", "import sys\n\nimport surely_not_installed\n")
        error = fault(path)
        assert error.message == f"{path}:3 raised ModuleNotFoundError: No module named 'surely_not_installed'"
        assert "Traceback" in error.detail

    def test_raising_names_the_users_own_line_not_torchs(self, write: Write) -> None:
        path = write(
            "raises.py",
            """
            import torch

            def raises():
                return torch.ones(2) @ torch.ones(3), ()
            """,
        )
        assert fault(path).message.startswith(f"{path}:5 raised RuntimeError: ")

    def test_a_model_made_on_a_gpu_that_is_not_there(self, write: Write) -> None:
        body = "raise AssertionError('Torch not compiled with CUDA enabled')"
        error = fault(write("on_cuda.py", f"def on_cuda():\n    {body}\n"))
        assert error.hint.startswith("Make the model and its inputs on the CPU")

    def test_a_model_that_memory_does_not_hold(self, write: Write) -> None:
        error = fault(write("large.py", "import torch\n\ndef large():\n    return torch.empty(2**60)\n"))
        assert "large.py:4 raised RuntimeError: " in error.message
        assert error.hint.startswith("Make it under torch.device('meta')")

    def test_sys_exit(self, write: Write) -> None:
        path = write("leaves.py", "import sys\n\ndef leaves():\n    sys.exit(3)\n")
        assert fault(path).message == f"{path}:4 called sys.exit(3)."

    @pytest.mark.parametrize(
        ("value", "sentence"),
        [
            ("None", "returned nothing"),
            ("torch.ones(2)", "returned a Tensor"),
            ("3", "returned an int,"),
            ("(lambda f: f())(__import__('asyncio').sleep.__get__(0))", "returned a coroutine,"),
            ("(torch.relu,)", "returned 1 value instead of two"),
            ("(torch.jit.script(torch.nn.ReLU()), (torch.ones(2),))", "returned a program of torch.jit,"),
            ("(torch.ones(2), (torch.ones(2),))", "returned a Tensor where the model should be"),
            ("(torch.nn.Linear, (2, 2))", "returned the class Linear where the model should be"),
            ("(torch.relu, {3: torch.ones(2)})", "returned keyword inputs that are no dict of names"),
            ("(torch.relu, (), torch.ones(2))", "returned keyword inputs that are no dict of names"),
            ("(torch.relu, 3)", "returned example inputs of type int"),
        ],
    )
    def test_wrong_return(self, write: Write, value: str, sentence: str) -> None:
        error = fault(write("wrong.py", f"import torch\n\ndef wrong():\n    return {value}\n"))
        assert error.message.startswith("wrong.py:wrong ")
        assert sentence in error.message
        assert "(module_or_function, example_inputs)" in error.hint

    @pytest.mark.parametrize("returned", ["(x,), {'scale': 3.0, 'mask': x > 1}", "dict(x=x, scale=3.0, mask=x > 1)"])
    @pytest.mark.parametrize("model", ["Scaled()", "lambda x, *, mask, scale: Scaled()(x, mask=mask, scale=scale)"])
    def test_inputs_by_keyword(self, write: Write, model: str, returned: str) -> None:
        """They come after the positional ones, as if the model took them so."""
        import torch

        text = f"""
            import torch

            class Scaled(torch.nn.Module):
                def forward(self, x, *, mask=None, scale=1.0):
                    return (x * scale).masked_fill(mask, 0.0)

            def by_keyword():
                x = torch.arange(3.0)
                return {model}, {returned}
        """
        source = load(write("by_keyword.py", text))
        assert len(source.inputs) == 3
        assert torch.equal(source.model(*source.inputs), torch.tensor([0.0, 3.0, 0.0]))

    def test_no_function(self, write: Write) -> None:
        assert "defines no function" in fault(write("empty.py", "x = 1\n")).message

    def test_several_functions(self, write: Write) -> None:
        error = fault(write("several.py", "def a(): pass\ndef b(): pass\n"))
        assert error.hint == "Say which: several.py:NAME with one of a, b."

    def test_missing_function(self, write: Write) -> None:
        error = fault(f"{write('mine5.py', GOOD)}:nope")
        assert error.message == "mine5.py has no function called 'nope'."
        assert error.hint == "It has make."

    def test_importable_function_is_named_as_it_was_asked_for(self) -> None:
        with pytest.raises(SourceError) as caught:
            load_source(parse_source("torch.nn:Linear"))
        assert caught.value.message == "torch.nn:Linear needs in_features, out_features and has no default for them."

    def test_file_that_is_no_text(self, write: Write) -> None:
        path = write("binary.py", "x = 1\n")
        path.write_bytes(b"\x00\x01\x02")
        assert fault(path).hint == "Check that it is a Python file, in UTF-8."

    def test_parameter_without_default(self, write: Write) -> None:
        path = write("needy.py", "import torch\n\ndef needy(n):\n    return torch.relu, (torch.ones(int(n)),)\n")
        assert "needs n" in fault(path).message
        assert load(path, n="5").inputs[0].shape == (5,)

    def test_bad_option_value(self, write: Write) -> None:
        assert fault(write("mine6.py", GOOD), size="big").message == (
            "Option size=big of mine6.py:make should be a whole number, like 4."
        )

    def test_unknown_option_in_the_source_itself(self) -> None:
        error = fault("example:relu_add_mul?colour=red")
        assert error.message == "relu_add_mul.py:relu_add_mul has no option 'colour'."
        assert "rows" in error.hint

    def test_unknown_example(self) -> None:
        error = fault("example:nope")
        assert "'nope'" in error.message
        assert "gpt2" in error.hint


class TestProgram:
    @pytest.fixture
    def program(self, tmp_path: Path) -> Path:
        import torch

        class Scaled(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = torch.nn.Linear(4, 4)

            def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
                return torch.relu(self.linear(x)) * scale

        path = tmp_path / "scaled.pt2"
        exported = torch.export.export(Scaled(), (torch.ones(2, 4),), {"scale": torch.full((2, 4), 3.0)})
        torch.export.save(exported, path)
        return path

    def test_keyword_inputs_become_positional(self, program: Path) -> None:
        import torch

        loaded = load(program)
        assert len(loaded.inputs) == 2
        once = loaded.model(*loaded.inputs)
        assert torch.equal(loaded.model(loaded.inputs[0], loaded.inputs[1] * 2), once * 2)

    @pytest.mark.parametrize("kept", [0.1, 0.5, 0.99])
    def test_truncated(self, program: Path, kept: float) -> None:
        data = program.read_bytes()
        program.write_bytes(data[: int(len(data) * kept)])
        assert fault(program).message == "scaled.pt2 is damaged or cut short."

    def test_not_a_program(self, tmp_path: Path) -> None:
        path = tmp_path / "text.pt2"
        path.write_text("hello")
        assert fault(path).message == "text.pt2 is not a .pt2 program."

    def test_zip_of_something_else(self, tmp_path: Path) -> None:
        path = tmp_path / "other.pt2"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt", "hello")
        assert "cannot be loaded" in fault(path).message

    @pytest.mark.parametrize("member", ["data/constants/opaque_obj_0", "data/aotinductor/model/code.so"])
    def test_code_in_the_archive_is_refused(self, program: Path, member: str) -> None:
        with zipfile.ZipFile(program, "a") as archive:
            archive.writestr(f"scaled/{member}", b"x")
        assert fault(program).code == "unsafe"

    def test_pickle_that_runs_code_is_refused_and_not_run(self, program: Path, tmp_path: Path) -> None:
        import io

        import torch

        marker = tmp_path / "ran"
        evil = io.BytesIO()
        torch.save(_Evil(marker), evil)
        rewritten = tmp_path / "evil.pt2"
        with zipfile.ZipFile(program) as old, zipfile.ZipFile(rewritten, "w") as new:
            for info in old.infolist():
                inputs = "sample_inputs" in info.filename
                new.writestr(info.filename, evil.getvalue() if inputs else old.read(info))
        error = fault(rewritten)
        assert error.code == "unsafe"
        assert not marker.exists()

    def test_size_expressions_may_only_be_arithmetic(self) -> None:
        made = ("Float('1.5', precision=53)", "Symbol('s7', integer=True) > 2")
        for text in ("2*s0 + Max(1, s1//2) - 1", "True", *made):
            assert is_arithmetic(text), text
        for text in (
            "exec(chr(1))", "__import__", "(1).__class__", "x.real", "'a'", "eval(s0)", "s0; s1", "sympify(1)", "f(s0)",
            "Symbol('a b')", "Symbol('s0', **k)", "Symbol('s0', integer=exec)", "Add('exec(1)', 1)", "Integer('f()')",
            "Float('f()')", "[s0]", "lambda: 1", "Max(*s0)", "s0[0]", "(" * 5000, "\0", "Symbol('exec')",
        ):  # fmt: skip
            assert not is_arithmetic(text), text

    def test_dynamic_sizes_are_read(self, tmp_path: Path) -> None:
        """torch writes them as sympy's constructors, with names as texts."""
        import torch

        class Scaled(torch.nn.Module):
            def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
                return torch.cat([x, y]).view(-1)[: x.shape[0] // 2 * 3 + 1] * (y.shape[0] / 2)

        sizes = ({0: torch.export.Dim("rows", min=4, max=64)}, {0: torch.export.Dim.AUTO})
        inputs = (torch.ones(4, 16), torch.ones(5, 16))
        path = tmp_path / "dynamic.pt2"
        torch.export.save(torch.export.export(Scaled(), inputs, dynamic_shapes=sizes), path)
        source = load_source(parse_source(str(path)))
        assert torch.equal(source.model(*source.inputs), Scaled()(*inputs))
        more = (torch.ones(8, 16), torch.ones(3, 16))
        assert torch.equal(source.model(*more), Scaled()(*more))


class _Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> object:
        return Path.touch, (self.marker,)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("example:gpt2?batch=8", True), ("a/model.py", True), ("model.py:make?n=1", True), ("M.PT2", True),
        ("package.module:make", True), ("run.fscope", False), ("logs", False), ("torch.log", False),
    ],
)  # fmt: skip
def test_the_form_of_a_source(text: str, is_one: bool) -> None:
    assert is_source(text) is is_one


def test_a_file_is_a_file_whatever_its_name_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run:one").write_bytes(b"")
    assert not is_source("run:one")

#!/usr/bin/python3
"""ci/mutants on a toy: which mutants it finds and draws, and what becomes of them. Arguments: source folder, build folder, compiler."""
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import unittest

SOURCE, BUILD, COMPILER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutants", str(SOURCE / "ci/mutants"))
mutants = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutants", loader))
loader.exec_module(mutants)

TOY = "gate/toy/toy.cpp"
TEXT = (SOURCE / "tests/ci/mutants/toy.cpp").read_bytes()
FLAGS = ["-std=c++20", f"-I{SOURCE / 'tests/ci/mutants'}"]


def parse(text, chosen=None):
    return mutants.find_places((TOY, str(SOURCE / "tests/ci/mutants/toy.cpp"), text, FLAGS, chosen))


FOUND = parse(TEXT)


def draw(count, seed):
    return mutants.draw({TOY: TEXT}, count, seed, lambda names: {TOY: FOUND}, lambda drawn: [])


def changes(found):
    return [(m["function"], m["kind"], m["old"], m["new"]) for m in found]


class Mutants(unittest.TestCase):
    def test_are_found_where_code_runs_and_nowhere_else(self):
        self.assertEqual(changes(FOUND), [
            ("toy::Counter::add", "return", "", "return;"),
            ("toy::Counter::sum", "return", "", "return {};"),
            ("toy::is_over", "return", "", "return {};"),
            ("toy::is_over", "compare", "value > limit_of(kind)", "value <= limit_of(kind)"),
            ("toy::is_over", "compare", "value > limit_of(kind)", "value >= limit_of(kind)"),
            ("toy::sum_of_positive", "return", "", "return {};"),
            ("toy::sum_of_positive", "branch", "if (value < 0)", "if (false)"),
            ("toy::sum_of_positive", "compare", "value < 0", "value <= 0"),
            ("toy::sum_of_positive", "compare", "value < 0", "value >= 0"),
            ("toy::sum_of_positive", "constant", "0", "1"),
            ("toy::sum_of_positive", "constant", "0x10", "0x11"),
            ("toy::sum_of_positive", "constant", "0x10", "0xf"),
            ("toy::never_called", "return", "", "return {};"),
            ("toy::never_called", "branch", 'if (name == "toy")', "if (false)"),
            ("toy::never_called", "compare", 'name == "toy"', 'name != "toy"'),
        ])

    def test_are_drawn_the_same_way_by_the_same_seed(self):
        first = draw(6, "1")
        self.assertEqual(changes(first), changes(draw(6, "1")))
        self.assertNotEqual(changes(first), changes(draw(6, "2")))
        self.assertEqual({m["kind"] for m in first}, set(mutants.KINDS))

    def test_that_do_not_compile_are_named(self):
        chosen = FOUND[:2]
        wrong = dict(chosen[1], code=" if (::weir_mutant(@)) return {{}, {}};")
        self.assertEqual(parse(TEXT, [chosen[0], wrong]), [wrong])

    def test_are_found_again_where_lines_moved(self):
        later = b"// One more line.\n" + TEXT.replace(b"std::string never_called", b"[[maybe_unused]] int g = 1;\nstd::string never_called")
        later = later.replace(b"if (value < 0) continue;", b"if (value <= -1) continue;")
        again, gone = mutants.find_again(FOUND[3:8:2], lambda names: {TOY: parse(later)}, {})
        self.assertEqual(changes(again), [("toy::is_over", "compare", "value > limit_of(kind)", "value <= limit_of(kind)"),
                                          ("toy::sum_of_positive", "return", "", "return {};")])
        self.assertEqual(changes(gone), [("toy::sum_of_positive", "compare", "value < 0", "value <= 0")])

    def test_are_killed_or_live_on_or_are_not_reached(self):
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir(parents=True)
        chosen = [m | {"id": number} for number, m in enumerate((FOUND[4], FOUND[7], FOUND[14]))]
        (BUILD / "toy.cpp").write_bytes(mutants.apply(TEXT, chosen)[0])
        (BUILD / "choice.cpp").write_text(mutants.CHOICE % len(chosen))
        (BUILD / "listener.cpp").write_text(mutants.LISTENER)
        subprocess.run([COMPILER, *FLAGS, "-O0", BUILD / "toy.cpp", BUILD / "choice.cpp", BUILD / "listener.cpp",
                        SOURCE / "tests/ci/mutants/toy_cases.cpp", "-o", BUILD / "toy_test", "-lgtest_main", "-lgtest"], check=True)
        tests = mutants.Tests(BUILD, ["toy_test"], BUILD / "scratch")
        tests.record("toy_test", 0, 1)
        self.assertEqual(tests.reached["toy_test"], {0: {"Limit.IsNotOverItself"}, 1: {"Sum.LeavesOutWhatIsNegative"}})
        self.assertEqual(tests.kill(0), "toy_test Limit.IsNotOverItself (failed)")  # 10 >= 10
        self.assertEqual(tests.kill(1), "")  # a zero adds nothing
        self.assertIsNone(tests.kill(2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
